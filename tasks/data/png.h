// Reads and writes grey pictures as PNG files (ISO/IEC 15948) with libpng.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attn::data {

struct Picture {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> grey{};  // levels 0..255 by rows, [height, width]
};

// Decodes a picture with 8 bits per channel, grey or colour, not interlaced. Alpha is ignored, and
// colours become grey as in grey.h. Error for other pictures and for damaged bytes; the message is
// one line that begins with `name`.
Picture decode_png(std::string_view bytes, const std::string& name);
Picture read_grey_png(const std::string& path);

std::string encode_png(const Picture& picture);  // grey, 8 bits, not interlaced
void write_grey_png(const std::string& path, const Picture& picture);

}  // namespace attn::data
