// Encodes and decodes PNG in memory; see png.h. libpng reports errors by longjmp. The functions
// that call setjmp therefore have no objects with destructors; their callers hold all state.
// O(pixels).
#include "tasks/data/png.h"

#include <png.h>

#include <csetjmp>
#include <cstring>
#include <memory>

#include "core/base/check.h"
#include "tasks/data/files.h"
#include "tasks/data/grey.h"

namespace attn::data {
namespace {

constexpr png_uint_32 kLargestSide = 4096;  // a damaged header must not ask for all the memory
constexpr size_t kMostInflated = 1032;      // bytes that deflate (RFC 1951) makes of one, at most

struct Fault {
  char text[128] = "";
};

[[noreturn]] void fail(png_structp png, png_const_charp why) {
  auto* const fault = static_cast<Fault*>(png_get_error_ptr(png));
  std::strncpy(fault->text, why, sizeof(fault->text) - 1);
  png_longjmp(png, 1);
}

void ignore(png_structp, png_const_charp) {}

struct Reader {
  std::string_view rest;  // bytes not yet read
  size_t size = rest.size();
  png_uint_32 width = 0, height = 0;
  int channels = 0;
  std::vector<uint8_t> pixels{};  // [height, width, channels]
  std::vector<png_bytep> rows{};
};

void read_bytes(png_structp png, png_bytep into, size_t count) {
  auto* const reader = static_cast<Reader*>(png_get_io_ptr(png));
  if (count > reader->rest.size()) png_error(png, "the file is cut short");
  std::memcpy(into, reader->rest.data(), count);
  reader->rest.remove_prefix(count);
}

void require_plain(png_structp png, png_infop info) {
  if (png_get_bit_depth(png, info) != 8 || png_get_color_type(png, info) == PNG_COLOR_TYPE_PALETTE)
    png_error(png, "expected 8 bits a channel, grey or colour, without a palette");
  if (png_get_interlace_type(png, info) != PNG_INTERLACE_NONE)
    png_error(png, "expected a picture that is not interlaced");
}

void reserve(Reader& reader, const std::string& name) {
  const size_t stride = size_t{reader.width} * static_cast<size_t>(reader.channels);
  ATTN_CHECK(stride * reader.height <= reader.size * kMostInflated,
             "{}: no readable PNG picture: {} bytes cannot hold {} x {} pixels", name, reader.size,
             reader.width, reader.height);
  reader.pixels.resize(stride * reader.height);
  for (size_t y = 0; y < reader.height; y++) reader.rows.push_back(&reader.pixels[y * stride]);
}

bool read_header(png_structp png, png_infop info, Reader* reader) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_user_limits(png, kLargestSide, kLargestSide);
  // Texts, profiles and the like are not read: libpng would keep what they inflate to, and reserve
  // what a damaged length says.
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_read_fn(png, reader, read_bytes);
  png_read_info(png, info);
  require_plain(png, info);
  reader->width = png_get_image_width(png, info);
  reader->height = png_get_image_height(png, info);
  reader->channels = png_get_channels(png, info);
  return true;
}

bool read_rows(png_structp png, Reader* reader) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_read_image(png, reader->rows.data());
  png_read_end(png, nullptr);
  return true;
}

void write_bytes(png_structp png, png_bytep from, size_t count) {
  static_cast<std::string*>(png_get_io_ptr(png))
      ->append(reinterpret_cast<const char*>(from), count);
}

void flush_nothing(png_structp) {}

bool write_all(png_structp png, png_infop info, const Picture* picture, std::string* bytes) {
  if (setjmp(png_jmpbuf(png))) return false;
  const auto width = static_cast<png_uint_32>(picture->width);
  const auto height = static_cast<png_uint_32>(picture->height);
  png_set_write_fn(png, bytes, write_bytes, flush_nothing);
  png_set_IHDR(png, info, width, height, 8, PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  for (png_uint_32 y = 0; y < height; y++)
    png_write_row(png, picture->grey.data() + size_t{y} * width);
  png_write_end(png, info);
  return true;
}

}  // namespace

Picture decode_png(std::string_view bytes, const std::string& name) {
  ATTN_CHECK(!bytes.empty(), "{}: an empty file; expected a PNG picture", name);
  Fault fault;
  Reader reader{.rest = bytes};
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &fault, fail, ignore);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  const auto destroy = [&](png_structp) { png_destroy_read_struct(&png, &info, nullptr); };
  const std::unique_ptr<png_struct, decltype(destroy)> owner(png, destroy);
  bool good = info && read_header(png, info, &reader);
  if (good) {
    reserve(reader, name);
    good = read_rows(png, &reader);
  }
  ATTN_CHECK(good, "{}: no readable PNG picture: {}", name, fault.text);

  Picture picture{.width = reader.width, .height = reader.height};
  if (reader.channels == 1) {
    picture.grey = std::move(reader.pixels);
    return picture;
  }
  const auto step = static_cast<size_t>(reader.channels);
  for (size_t at = 0; at < reader.pixels.size(); at += step) {
    const uint8_t* const p = &reader.pixels[at];
    picture.grey.push_back(step < 3 ? p[0] : grey_of(p[0], p[1], p[2]));
  }
  return picture;
}

Picture read_grey_png(const std::string& path) {
  const File file(path);
  constexpr int64_t kLargest = int64_t{64} << 20;  // the pixels of 4096 x 4096 with four channels
  ATTN_CHECK(file.size() <= kLargest, "{}: {} bytes; no picture that is read here has as many",
             path, file.size());
  return decode_png(file.read(0, file.size()), path);
}

std::string encode_png(const Picture& picture) {
  ATTN_CHECK(picture.width >= 1 && picture.height >= 1 &&
                 std::ssize(picture.grey) == picture.width * picture.height,
             "a picture of {} x {} pixels with {} grey levels", picture.width, picture.height,
             picture.grey.size());
  Fault fault;
  std::string bytes;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &fault, fail, ignore);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  const bool good = info && write_all(png, info, &picture, &bytes);
  png_destroy_write_struct(&png, &info);
  ATTN_CHECK(good, "cannot make a PNG picture: {}", fault.text);
  return bytes;
}

void write_grey_png(const std::string& path, const Picture& picture) {
  write_file(path, encode_png(picture));
}

}  // namespace attn::data
