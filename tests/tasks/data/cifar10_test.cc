// CIFAR-10 binary batches written by hand: order of the planes, grey levels, splits, damage.
#include <gtest/gtest.h>

#include "tasks/catalog.h"
#include "tasks/data/grey.h"
#include "tests/tasks/data/folder.h"

namespace attn::cifar10_test {
namespace {

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
  EXPECT_NE(read->draw(read->example(0, Split::test, 1)).find("(automobile)"), std::string::npos);
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
  EXPECT_NE(said("data_batch_3.bin", batch(9, 4).substr(1)).find("data_batch_3.bin: 12291 bytes"),
            std::string::npos);
  EXPECT_NE(said("data_batch_3.bin", "").find("data_batch_3.bin: 0 bytes"), std::string::npos);
  EXPECT_NE(said("data_batch_3.bin", batch(9, 3) + record(10, 1, 2, 3))
                .find("data_batch_3.bin record 3: label 10; expected 0 to 9"),
            std::string::npos);
  folder_.remove("data_batch_3.bin");
  EXPECT_NE(fault_of([&] { task(); }).find("data_batch_3.bin"), std::string::npos);
  EXPECT_NE(fault_of([&] { task(16); }).find("side=16"), std::string::npos);
  folder_.remove("data_batch_1.bin");
  EXPECT_NE(fault_of([&] { task(); }).find("expected data_batch_1.bin"), std::string::npos);
}

}  // namespace
}  // namespace attn::cifar10_test
