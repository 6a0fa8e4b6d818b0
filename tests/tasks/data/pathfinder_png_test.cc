// Pathfinder folders as released, with PNG files put together by hand: order, splits, the known
// empty file, damage.
#include <gtest/gtest.h>

#include "tasks/data/files.h"
#include "tasks/data/released.h"
#include "tasks/data/sources.h"
#include "tests/tasks/data/bare_png.h"
#include "tests/tasks/data/folder.h"
#include "tests/tasks/stored.h"
#include "tests/said.h"

namespace attn::pathfinder_png_test {
namespace {

std::string flat_png(int level, uint32_t side = 32) {
  return BarePng{.width = side, .height = side}.file(
      std::string(size_t{side} * side, static_cast<char>(level)));
}

Example grey_example(std::span<const uint8_t> grey, int32_t label) {
  return {.tokens = std::vector<int32_t>(grey.begin(), grey.end()), .target = {label}};
}

class PathfinderPng : public testing::Test {
 protected:
  // Ten pictures in the folders 0, 2 and 10; the picture number n has the level n + 1.
  void fill(const std::string& level) const {
    int n = 0;
    for (const auto& [number, count] : {std::pair{0, 4}, {2, 3}, {10, 3}}) {
      std::string lines;
      for (int k = 0; k < count; k++, n++) {
        folder_.write(fmt::format("{}/imgs/{}/sample_{}.png", level, number, k), flat_png(n + 1));
        lines += fmt::format("imgs/{} sample_{}.png {} {} 1.0 14 4\n", number, k, k, n % 2);
      }
      folder_.write(fmt::format("{}/metadata/{}.npy", level, number), lines);
    }
  }
  PathfinderPng() { fill(kHard); }

  std::unique_ptr<Source> source(int64_t contour = 14, int64_t side = 32) const {
    return data::pathfinder_png(folder_.path(), side, contour, grey_example);
  }
  std::string said() const {
    return fault_of([&] {
      const auto read = source();
      for (const Split split : {Split::train, Split::validation, Split::test})
        for (int64_t i = 0; i < read->count(split); i++) read->example(split, i);
    });
  }

  const std::string kHard = "pathfinder32/curv_contour_length_14";
  Folder folder_;
};

TEST_F(PathfinderPng, InOrderOfTheMetadataNumbersEightyTenTen) {
  const auto read = source();
  ASSERT_EQ(read->count(Split::train), 8);
  ASSERT_EQ(read->count(Split::validation), 1);
  ASSERT_EQ(read->count(Split::test), 1);
  const std::pair<Split, int64_t> places[] = {
      {Split::train, 0}, {Split::train, 7}, {Split::validation, 0}, {Split::test, 0}};
  const int numbers[] = {0, 7, 8, 9};
  for (size_t i = 0; i < 4; i++) {
    const Example e = read->example(places[i].first, places[i].second);
    EXPECT_EQ(e.tokens, std::vector<int32_t>(1024, numbers[i] + 1));
    EXPECT_EQ(e.target, std::vector<int32_t>{numbers[i] % 2});
  }
}

TEST_F(PathfinderPng, EachContourHasItsFolder) {
  fill("pathfinder32/curv_contour_length_9");
  EXPECT_EQ(source(9)->count(Split::train), 8);
  EXPECT_TRUE(says(fault_of([&] { source(6); }), "expected curv_baseline"));
  EXPECT_TRUE(says(fault_of([&] { source(7); }), "contour=7"));
  EXPECT_TRUE(says(fault_of([&] { source(14, 24); }), "side=24"));
  EXPECT_TRUE(says(fault_of([&] { source(14, 64); }), "pathfinder64"));
  EXPECT_EQ(data::pathfinder_png(folder_.path() + "/pathfinder32", 32, 14, grey_example)
                ->count(Split::train),
            8);
}

TEST_F(PathfinderPng, TheKnownEmptyFileIsSkippedAndNoOther) {
  fill("pathfinder32/curv_baseline");
  const auto with_empty = [&](const std::string& level, int number) {
    const std::string name = fmt::format("sample_{}.png", number);
    folder_.write(level + "/imgs/0/" + name, "");
    std::string lines;
    for (int k = 0; k < 4; k++) lines += fmt::format("imgs/0 sample_{}.png {} {}\n", k, k, k % 2);
    folder_.write(level + "/metadata/0.npy", fmt::format("imgs/0 {} 172 1\n", name) + lines);
  };
  with_empty("pathfinder32/curv_baseline", 172);
  EXPECT_EQ(source(6)->count(Split::train), 8);
  EXPECT_EQ(source(6)->example(Split::train, 0).tokens[0], 1);
  with_empty("pathfinder32/curv_baseline", 171);
  EXPECT_TRUE(says(fault_of([&] { source(6); }),
                   "sample_171.png: no whole PNG picture: the file is "
                   "empty"));
  with_empty(kHard, 172);
  EXPECT_TRUE(says(said(), "sample_172.png"));
}

TEST_F(PathfinderPng, PicturesOfAnEarlierSplitAreLeftOut) {
  folder_.write(kHard + "/imgs/10/sample_0.png", flat_png(2));  // number 7: in training
  folder_.write(kHard + "/imgs/2/sample_0.png", flat_png(3));   // twice in training: stays
  EXPECT_EQ(source()->duplicates(), 0);
  folder_.write(kHard + "/imgs/10/sample_3.png", flat_png(5));
  folder_.write(kHard + "/metadata/11.npy", "imgs/10 sample_3.png 3 1\nimgs/2 sample_1.png 1 0\n");
  // Of twelve, nine train: numbers 9 (level 10), 10 (level 5, in training), 11 (level 6 as 5).
  const auto read = source();
  EXPECT_EQ(read->count(Split::train), 9);
  EXPECT_EQ(read->count(Split::validation) + read->count(Split::test) + read->duplicates(), 3);
  EXPECT_EQ(read->duplicates(), 1);
}

TEST_F(PathfinderPng, DamageIsOneLineThatNamesFileAndLine) {
  const std::string picture = kHard + "/imgs/2/sample_1.png", list = kHard + "/metadata/2.npy";
  const std::string good = flat_png(6);
  folder_.write(picture, good.substr(0, good.size() - 1));
  EXPECT_TRUE(says(said(), "sample_1.png: no whole PNG picture: the file is cut"));
  std::string damaged = good;
  damaged[good.size() / 2] ^= 1;
  folder_.write(picture, damaged);
  EXPECT_TRUE(says(said(), "sample_1.png: no readable PNG picture"));
  folder_.write(picture, flat_png(6, 16));
  EXPECT_TRUE(says(said(), "sample_1.png: 16 x 16 pixels; expected 32 x 32"));
  folder_.remove(picture);
  EXPECT_TRUE(says(said(), "sample_1.png"));
  folder_.write(picture, good);
  EXPECT_EQ(said(), "");
  folder_.write(list, "imgs/2 sample_0.png 0 1\nimgs/2 sample_1.png 1\n");
  EXPECT_TRUE(says(said(), "2.npy line 2: 3 columns; expected folder, file"));
  folder_.write(list, "imgs/2 sample_0.png 0 2\n");
  EXPECT_TRUE(says(said(), "2.npy line 1: label '2'; expected 0 or 1"));
  folder_.write(kHard + "/metadata/x.npy", "");
  EXPECT_TRUE(says(said(), "metadata/x.npy"));
  folder_.remove(kHard + "/metadata");
  EXPECT_TRUE(says(said(), "metadata"));
  folder_.write(kHard + "/metadata/readme", "");
  EXPECT_TRUE(says(said(), "no .npy file"));
}

TEST_F(PathfinderPng, TheFingerprintFollowsPicturesAndLabels) {
  const std::string before = source()->fingerprint();
  folder_.write(kHard + "/imgs/2/sample_1.png", flat_png(60));
  const std::string changed = source()->fingerprint();
  EXPECT_NE(changed, before);
  folder_.write(kHard + "/metadata/10.npy",
                "imgs/10 sample_0.png 0 0\nimgs/10 sample_1.png 1 0\nimgs/10 sample_2.png 2 0\n");
  EXPECT_NE(source()->fingerprint(), changed);
}

// Flat pictures, told apart by two pixels; quick to make, and without end.
class Flat final : public Task {
 public:
  Flat() : Task(Params("flat", {{"train_examples", 5, "size"}})) {}

 private:
  static Example at(Split split, int64_t index) {
    std::vector<uint8_t> grey(1024, static_cast<uint8_t>(split));
    grey[0] = static_cast<uint8_t>(index / 256);
    grey[1] = static_cast<uint8_t>(index % 256);
    return grey_example(grey, static_cast<int32_t>(index % 2));
  }
  Example do_example(Rng&) const override { return {}; }
  const Source* do_source() const override { return &source_; }
  TaskShape do_shape() const override { return {.length = 1024, .vocab = 257, .classes = 2}; }
  double do_chance() const override { return 0.5; }
  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>&) const override {
    return {};
  }
  std::string do_draw(const Example&) const override { return ""; }
  int64_t do_picture_width() const override { return 32; }
  std::vector<uint8_t> do_picture(const Example& e) const override {
    std::vector<uint8_t> grey;
    for (const int32_t token : e.tokens) grey.push_back(static_cast<uint8_t>(token - 1));
    return grey;
  }

  Stored source_{[](Split split, int64_t index) {
    Example e = at(split, index);
    for (int32_t& token : e.tokens) token++;
    return e;
  }};
};

TEST(PathfinderWriter, AThousandPicturesAFolder) {
  const Folder folder;
  const ReleasedFormat& format = data::pathfinder_png_format();
  const Flat task;
  constexpr int64_t kCount = 125;  // 1250 pictures
  format.write(task, 0, kCount, folder.path() + "/" + format.folder(task));
  const auto names = [&](const std::string& inner) {
    return data::names_in(folder.path() + "/pathfinder32/curv_contour_length_14/" + inner);
  };
  EXPECT_EQ(names("metadata"), (std::vector<std::string>{"0.npy", "1.npy"}));
  EXPECT_EQ(names("imgs/0").size(), 1000U);
  EXPECT_EQ(names("imgs/1").size(), 250U);
  const auto read = data::pathfinder_png(folder.path(), 32, 14, grey_example);
  EXPECT_EQ(read->duplicates(), 0);
  for (const auto& [split, count] :
       {std::pair{Split::train, 8 * kCount}, {Split::validation, kCount}, {Split::test, kCount}}) {
    ASSERT_EQ(read->count(split), count);
    for (int64_t i = 0; i < count; i++) {
      const Example e = read->example(split, i);
      ASSERT_EQ(e.tokens[0] * 256 + e.tokens[1], i);
      ASSERT_EQ(e.tokens[2], static_cast<int32_t>(split));
      ASSERT_EQ(e.target[0], i % 2);
    }
  }
}

}  // namespace
}  // namespace attn::pathfinder_png_test
