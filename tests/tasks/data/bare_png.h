// PNG files put together by hand, without libpng and without compression, so that a test knows
// every byte: ISO/IEC 15948, with stored blocks of RFC 1951.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace attn {

inline std::string big_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
  return bytes;
}

inline uint32_t crc32_of(std::string_view bytes) {
  uint32_t crc = 0xffffffff;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc;
}

inline std::string png_chunk(const std::string& name, const std::string& data) {
  return big_endian(static_cast<uint32_t>(data.size())) + name + data +
         big_endian(crc32_of(name + data));
}

inline std::string stored_zlib(std::string_view bytes) {
  uint32_t a = 1, b = 0;
  for (const char c : bytes) {
    a = (a + static_cast<unsigned char>(c)) % 65521;
    b = (b + a) % 65521;
  }
  std::string out = "\x78\x01";
  do {
    const std::string_view part = bytes.substr(0, 65535);
    bytes.remove_prefix(part.size());
    out += bytes.empty() ? '\1' : '\0';
    for (const uint32_t word :
         {static_cast<uint32_t>(part.size()), ~static_cast<uint32_t>(part.size())}) {
      out += static_cast<char>(word & 255);
      out += static_cast<char>(word >> 8 & 255);
    }
    out += part;
  } while (!bytes.empty());
  return out + big_endian(b << 16 | a);
}

struct BarePng {
  uint32_t width = 0, height = 0;
  int depth = 8, color = 0, interlace = 0;  // color: 0 grey, 2 RGB, 3 palette, 4 grey+alpha, 6 RGBA

  // `rows`: the bytes of all rows, without the filter byte that begins each.
  std::string file(std::string_view rows) const {
    std::string filtered;
    const size_t stride = rows.size() / height;
    for (size_t y = 0; y < height; y++) (filtered += '\0') += rows.substr(y * stride, stride);
    std::string header = big_endian(width) + big_endian(height);
    for (const int field : {depth, color, 0, 0, interlace}) header += static_cast<char>(field);
    std::string all = "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", header);
    if (color == 3) all += png_chunk("PLTE", std::string(6, '\x10'));
    return all + png_chunk("IDAT", stored_zlib(filtered)) + png_chunk("IEND", "");
  }
};

}  // namespace attn
