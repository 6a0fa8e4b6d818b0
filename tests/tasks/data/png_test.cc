// PNG pictures: those put together by hand are read, each damage is named, and what is written is
// read back.
#include "tasks/data/png.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <zlib.h>

#include "tests/tasks/data/bare_png.h"
#include "tests/tasks/data/folder.h"

namespace attn::data::png_test {
namespace {

using Levels = std::vector<uint8_t>;

Levels decode(const BarePng& png, std::string_view rows) {
  return decode_png(png.file(rows), "p.png").grey;
}

std::string said(const std::string& bytes) {
  return fault_of([&] { decode_png(bytes, "p.png"); });
}

// `count` letters as zlib data.
std::string deflated_letters(size_t count) {
  const std::string letters(count, 'x');
  std::string bytes(compressBound(count), '\0');
  uLongf size = bytes.size();
  compress2(reinterpret_cast<Bytef*>(bytes.data()), &size,
            reinterpret_cast<const Bytef*>(letters.data()), count, 9);
  bytes.resize(size);
  return bytes;
}

int64_t peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(Png, GreyLevelsByRows) {
  const Picture p = decode_png(BarePng{.width = 3, .height = 2}.file("abcdef"), "p.png");
  EXPECT_EQ(p.width, 3);
  EXPECT_EQ(p.height, 2);
  EXPECT_EQ(p.grey, (Levels{'a', 'b', 'c', 'd', 'e', 'f'}));
}

TEST(Png, ColourBecomesGreyAndAlphaIsIgnored) {
  const std::string red = "\xff", none(1, '\0');
  EXPECT_EQ(decode({.width = 2, .height = 1, .color = 2}, red + none + none + "aaa"),
            (Levels{76, 'a'}));
  EXPECT_EQ(decode({.width = 1, .height = 2, .color = 6}, "aaa" + none + "bbb" + red),
            (Levels{'a', 'b'}));
  EXPECT_EQ(decode({.width = 2, .height = 1, .color = 4}, "a" + none + "b" + red),
            (Levels{'a', 'b'}));
}

TEST(Png, OtherKindsAreRefused) {
  EXPECT_NE(said(BarePng{.width = 1, .height = 1, .depth = 16}.file("ab")).find("8 bits"),
            std::string::npos);
  EXPECT_NE(said(BarePng{.width = 8, .height = 1, .depth = 1}.file("a")).find("8 bits"),
            std::string::npos);
  const std::string zero(1, '\0');
  EXPECT_NE(said(BarePng{.width = 1, .height = 1, .color = 3}.file(zero)).find("palette"),
            std::string::npos);
  EXPECT_NE(said(BarePng{.width = 1, .height = 1, .interlace = 1}.file("a")).find("interlaced"),
            std::string::npos);
}

TEST(Png, DamageIsOneLineThatNamesTheFile) {
  const std::string good = BarePng{.width = 32, .height = 32}.file(std::string(1024, 'x'));
  ASSERT_EQ(said(good), "");
  for (size_t length = 0; length < good.size() - 4; length++) {
    const std::string text = said(good.substr(0, length));
    ASSERT_EQ(text.substr(0, 7), "p.png: ") << length;
    ASSERT_EQ(text.find('\n'), std::string::npos) << text;
  }
  // The last four bytes are the checksum of the end mark, which holds nothing: libpng 1.6.46 and
  // later need not read them.
  for (size_t at = 0; at < good.size() - 4; at++) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    ASSERT_NE(said(damaged), "") << "byte " << at;
  }
  EXPECT_NE(said("").find("empty"), std::string::npos);
  EXPECT_NE(said(good.substr(0, 600)).find("cut short"), std::string::npos);
  EXPECT_NE(said("Not a picture at all").find("p.png"), std::string::npos);
}

TEST(Png, ALyingHeaderTakesNoMemory) {
  for (const uint32_t width : {5000u, 1u << 30})
    EXPECT_NE(said(BarePng{.width = width, .height = 1}.file("a")).find("IHDR"), std::string::npos);
}

TEST(Png, NoMorePixelsAreReservedThanTheBytesCanHold) {
  BarePng lying{.width = 4096, .height = 1};
  std::string file = lying.file(std::string(4096, 'x'));
  file.replace(20, 4, big_endian(4096));  // the height
  file.replace(29, 4, big_endian(crc32_of(file.substr(12, 17))));
  EXPECT_NE(said(file).find("cannot hold 4096 x 4096 pixels"), std::string::npos) << said(file);
}

TEST(Png, WhatIsNoPixelIsNotKept) {
  constexpr size_t kText = 7'900'000;  // libpng keeps up to 8 MB each, of up to 1000 texts
  const std::string text = png_chunk("zTXt", std::string("a\0\0", 3) + deflated_letters(kText));
  std::string file = BarePng{.width = 1, .height = 1}.file("a");
  for (int i = 0; i < 20; i++) file.insert(33, text);  // behind the header
  const int64_t before = peak_kilobytes();
  EXPECT_EQ(said(file), "");
  EXPECT_LT(peak_kilobytes() - before, 64 << 10);
}

TEST(Png, AFileLargerThanAnyPictureIsNotRead) {
  const Folder folder;
  folder.write("p.png", BarePng{.width = 1, .height = 1}.file("a"));
  const std::string path = folder.path() + "/p.png";
  std::filesystem::resize_file(path, uintmax_t{1} << 32);  // takes no room
  EXPECT_NE(fault_of([&] { read_grey_png(path); }).find("p.png: 4294967296 bytes"),
            std::string::npos);
}

TEST(Png, WhatIsWrittenIsReadBack) {
  const Folder folder;
  Picture picture{.width = 5, .height = 3};
  for (int i = 0; i < 15; i++) picture.grey.push_back(static_cast<uint8_t>(i * 17));
  const std::string path = folder.path() + "/p.png";
  write_grey_png(path, picture);
  const Picture back = read_grey_png(path);
  EXPECT_EQ(back.width, 5);
  EXPECT_EQ(back.height, 3);
  EXPECT_EQ(back.grey, picture.grey);
  picture.grey.pop_back();
  EXPECT_NE(fault_of([&] { encode_png(picture); }).find("14 grey levels"), std::string::npos);
  EXPECT_NE(fault_of([&] { read_grey_png(folder.path() + "/none.png"); }).find("none.png"),
            std::string::npos);
  EXPECT_NE(fault_of([&] { write_grey_png("/nowhere/p.png", back); }).find("/nowhere"),
            std::string::npos);
}

}  // namespace
}  // namespace attn::data::png_test
