// Readers of pictures: PNG files and CIFAR-10's batches.
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <zlib.h>

#include "tasks/catalog.h"
#include "tasks/data/grey.h"
#include "tasks/data/png.h"
#include "tests/tasks/data/bare_png.h"
#include "tests/tasks/data/folder.h"
#include "tests/said.h"

namespace attn::data::png_test {
namespace {

// PNG pictures: those put together by hand are read, each damage is named, and what is written is
// read back.

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
  EXPECT_TRUE(says(said(BarePng{.width = 1, .height = 1, .depth = 16}.file("ab")), "8 bits"));
  EXPECT_TRUE(says(said(BarePng{.width = 8, .height = 1, .depth = 1}.file("a")), "8 bits"));
  const std::string zero(1, '\0');
  EXPECT_TRUE(says(said(BarePng{.width = 1, .height = 1, .color = 3}.file(zero)), "palette"));
  EXPECT_TRUE(says(said(BarePng{.width = 1, .height = 1, .interlace = 1}.file("a")), "interlaced"));
}

TEST(Png, DamageIsOneLineThatNamesTheFile) {
  const std::string good = BarePng{.width = 32, .height = 32}.file(std::string(1024, 'x'));
  ASSERT_EQ(said(good), "");
  for (size_t length = 0; length < good.size() - 4; length++) {
    const std::string text = said(good.substr(0, length));
    ASSERT_EQ(text.substr(0, 7), "p.png: ") << length;
    ASSERT_FALSE(says(text, "\n"));
  }
  // The last four bytes are the checksum of the end mark, which holds nothing: libpng 1.6.46 and
  // later need not read them.
  for (size_t at = 0; at < good.size() - 4; at++) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    ASSERT_NE(said(damaged), "") << "byte " << at;
  }
  EXPECT_TRUE(says(said(""), "empty"));
  EXPECT_TRUE(says(said(good.substr(0, 600)), "cut short"));
  EXPECT_TRUE(says(said("Not a picture at all"), "p.png"));
}

TEST(Png, ALyingHeaderTakesNoMemory) {
  for (const uint32_t width : {5000u, 1u << 30})
    EXPECT_TRUE(says(said(BarePng{.width = width, .height = 1}.file("a")), "IHDR"));
}

TEST(Png, NoMorePixelsAreReservedThanTheBytesCanHold) {
  BarePng lying{.width = 4096, .height = 1};
  std::string file = lying.file(std::string(4096, 'x'));
  file.replace(20, 4, big_endian(4096));  // the height
  file.replace(29, 4, big_endian(crc32_of(file.substr(12, 17))));
  EXPECT_TRUE(says(said(file), "cannot hold 4096 x 4096 pixels"));
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
  EXPECT_TRUE(says(fault_of([&] { read_grey_png(path); }), "p.png: 4294967296 bytes"));
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
  EXPECT_TRUE(says(fault_of([&] { encode_png(picture); }), "14 grey levels"));
  EXPECT_TRUE(says(fault_of([&] { read_grey_png(folder.path() + "/none.png"); }), "none.png"));
  EXPECT_TRUE(says(fault_of([&] { write_grey_png("/nowhere/p.png", back); }), "/nowhere"));
}

// CIFAR-10 binary batches written by hand: order of the planes, grey levels, splits, damage.

// A picture of one colour but for its first pixel, which is black.
std::string record(int label, int red, int green, int blue) {
  std::string bytes(1, static_cast<char>(label));
  for (const int level : {red, green, blue})
    bytes += '\0' + std::string(1023, static_cast<char>(level));
  return bytes;
}

// Ten batches' records: the picture number n has the grey level n.
std::string batch(int first, int count) {
  std::string bytes;
  for (int n = first; n < first + count; n++) bytes += record(n % 10, n, n, n);
  return bytes;
}

class Cifar10 : public testing::Test {
 protected:
  Cifar10() {
    for (int i = 0; i < 5; i++)
      folder_.write(fmt::format("data_batch_{}.bin", i + 1), batch(1 + 4 * i, 4));
    folder_.write("test_batch.bin", batch(200, 3));
  }
  std::unique_ptr<Task> task(int64_t side = 32) const {
    return find_task("image").build({{"data", folder_.path()}, {"side", side}});
  }
  std::vector<uint8_t> picture(Split split, int64_t index) const {
    const auto read = task();
    return read->picture(read->example(0, split, index));
  }
  Folder folder_;
};

TEST_F(Cifar10, NineTenthsTrainAndTheLastTenthValidates) {
  const auto read = task();
  ASSERT_EQ(read->count(Split::train), 18);
  ASSERT_EQ(read->count(Split::validation), 2);
  ASSERT_EQ(read->count(Split::test), 3);
  for (const auto& [split, index, level] : {std::tuple{Split::train, 0, 1},
                                            {Split::train, 17, 18},
                                            {Split::validation, 0, 19},
                                            {Split::validation, 1, 20},
                                            {Split::test, 2, 202}}) {
    const Example e = read->example(0, split, index);
    EXPECT_EQ(e.target, std::vector<int32_t>{level % 10});
    std::vector<uint8_t> wanted(1024, static_cast<uint8_t>(level));
    wanted[0] = 0;
    EXPECT_EQ(read->picture(e), wanted);
    EXPECT_TRUE(e.evidence.empty());
  }
}

TEST_F(Cifar10, ColoursBecomeGreyByTheirWeights) {
  folder_.write("test_batch.bin", record(0, 255, 0, 0) + record(1, 0, 255, 0) +
                                      record(2, 0, 0, 255) + record(3, 200, 100, 50));
  EXPECT_EQ(picture(Split::test, 0)[5], 76);   // 255.5 · .2989 = 76.4
  EXPECT_EQ(picture(Split::test, 1)[5], 149);  // 255.5 · .5870 = 149.98
  EXPECT_EQ(picture(Split::test, 2)[5], 29);   // 255.5 · .1140 = 29.1
  EXPECT_EQ(picture(Split::test, 3)[5], 124);  // 255.5/255 · (59.78 + 58.7 + 5.7) = 124.4
}

// In single precision, as TensorFlow does it; a level may differ where the sum is nearly whole.
TEST(Grey, FollowsTensorFlowAndKeepsGreyLevels) {
  for (int level = 0; level < 256; level++) {
    const auto l = static_cast<uint8_t>(level);
    EXPECT_EQ(data::grey_of(l, l, l), level);
  }
  int differ = 0, count = 0;
  for (int red = 0; red < 256; red += 3)
    for (int green = 0; green < 256; green += 3)
      for (int blue = 0; blue < 256; blue += 3, count++) {
        const float unit = 1.0f / 255;
        const float sum = static_cast<float>(red) * unit * .2989f +
                          static_cast<float>(green) * unit * .587f +
                          static_cast<float>(blue) * unit * .114f;
        const int tensorflow = static_cast<int>(sum * 255.5f);
        const int ours = data::grey_of(static_cast<uint8_t>(red), static_cast<uint8_t>(green),
                                       static_cast<uint8_t>(blue));
        EXPECT_LE(std::abs(ours - tensorflow), 1);
        differ += ours != tensorflow;
      }
  EXPECT_LE(differ, count / 10000) << "of " << count;
}

TEST_F(Cifar10, InputsAreStandardised) {
  const float value = task()->example(0, Split::test, 0).values[5];
  EXPECT_FLOAT_EQ(value, static_cast<float>((200 / 255.0 - 0.48) / 0.24));
}

TEST_F(Cifar10, TheSubfolderIsFoundAndDrawingNamesTheClass) {
  const Folder outer;
  std::filesystem::copy(folder_.path(), outer.path() + "/cifar-10-batches-bin");
  const auto read = find_task("image").build({{"data", outer.path()}});
  EXPECT_TRUE(says(read->draw(read->example(0, Split::test, 1)), "(automobile)"));
}

TEST_F(Cifar10, InputsOfAnEarlierSplitAreLeftOut) {
  folder_.write("test_batch.bin", batch(3, 1) + batch(200, 2) + batch(20, 1));
  const auto read = task();
  EXPECT_EQ(read->count(Split::test), 2);
  EXPECT_EQ(read->source()->duplicates(), 2);
}

TEST_F(Cifar10, TheFingerprintFollowsTheContents) {
  const std::string before = task()->source()->fingerprint();
  folder_.write("test_batch.bin", batch(201, 3));
  EXPECT_NE(task()->source()->fingerprint(), before);
}

TEST_F(Cifar10, DamageIsOneLineThatNamesTheFile) {
  const auto said = [&](const std::string& name, const std::string& bytes) {
    folder_.write(name, bytes);
    return fault_of([&] { task(); });
  };
  EXPECT_TRUE(
      says(said("data_batch_3.bin", batch(9, 4).substr(1)), "data_batch_3.bin: 12291 bytes"));
  EXPECT_TRUE(says(said("data_batch_3.bin", ""), "data_batch_3.bin: 0 bytes"));
  EXPECT_TRUE(says(said("data_batch_3.bin", batch(9, 3) + record(10, 1, 2, 3)),
                   "data_batch_3.bin record 3: label 10; expected 0 to 9"));
  folder_.remove("data_batch_3.bin");
  EXPECT_TRUE(says(fault_of([&] { task(); }), "data_batch_3.bin"));
  EXPECT_TRUE(says(fault_of([&] { task(16); }), "side=16"));
  folder_.remove("data_batch_1.bin");
  EXPECT_TRUE(says(fault_of([&] { task(); }), "expected data_batch_1.bin"));
}

}  // namespace
}  // namespace attn::data::png_test
