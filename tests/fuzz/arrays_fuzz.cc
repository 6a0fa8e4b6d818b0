// Arrays and pictures: what is written reads the same.
#include <cmath>

#include <zlib.h>

#include "harness/cli/npy.h"
#include "tasks/data/png.h"
#include "tests/fuzz/oracle.h"
#include "tests/fuzz/targets.h"

namespace attn::fuzz {
namespace {

bool is_same(double a, double b) {
  return a == b ? std::signbit(a) == std::signbit(b) : std::isnan(a) && std::isnan(b);
}

uint32_t big_endian_at(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = at; i < at + 4; i++) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

void put_checksums_right(std::string& bytes) {
  for (size_t at = 8; at + 12 <= bytes.size();) {  // length, name, data, checksum
    const size_t length = big_endian_at(bytes, at);
    if (length > bytes.size() - at - 12) return;
    const auto* const named = reinterpret_cast<const Bytef*>(bytes.data() + at + 4);
    const uLong crc = crc32(0, named, static_cast<uInt>(length + 4));
    at += 8 + length;
    for (int shift = 24; shift >= 0; shift -= 8)
      bytes[at++] = static_cast<char>(crc >> shift & 255);
  }
}

}  // namespace

// A .npy file: an array of floating-point numbers that is written reads the same.
void npy(std::string_view bytes) {
  cli::Array array;
  if (!accepts([&] { array = cli::parse_npy("q.npy", std::string(bytes)); })) return;
  size_t count = 1;
  for (const int64_t dim : array.shape) count *= static_cast<size_t>(dim);
  require(count == array.values.size(), "values that the shape does not hold");
  if (!array.is_float()) return;
  const cli::Array again = cli::parse_npy("again.npy", cli::npy_bytes(array));
  require(again.shape == array.shape && again.type == array.type, "the shape or type changes");
  for (size_t i = 0; i < count; i++)
    require(is_same(again.values[i], array.values[i]), "a value changes when written");
}

// A picture: what is read and written again has the same levels. Checksums of chunks are put right
// first, unless the first byte is '!': a changed byte would reach nothing behind them.
void png(std::string_view bytes) {
  std::string file(bytes);
  if (file.starts_with('!'))
    file.erase(0, 1);
  else
    put_checksums_right(file);
  data::Picture picture;
  if (!accepts([&] { picture = data::decode_png(file, "sample.png"); })) return;
  const data::Picture again = data::decode_png(data::encode_png(picture), "again.png");
  require(
      again.width == picture.width && again.height == picture.height && again.grey == picture.grey,
      "a picture changes when written");
}

}  // namespace attn::fuzz
