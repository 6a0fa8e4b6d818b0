// IMDb review files written by hand: order, the validation documents, damage.
#include <gtest/gtest.h>

#include "tasks/data/sources.h"
#include "tests/tasks/data/folder.h"

namespace attn::imdb_test {
namespace {

class Imdb : public testing::Test {
 protected:
  Imdb() {
    for (int i = 0; i < 20; i++) {
      folder_.write(fmt::format("aclImdb/train/pos/{}_9.txt", i), fmt::format("good {}", i));
      folder_.write(fmt::format("aclImdb/train/neg/{}_2.txt", i), fmt::format("bad {}", i));
    }
    folder_.write("aclImdb/train/neg/index.html", "not a review");
    folder_.write("aclImdb/test/pos/0_10.txt", "\xff\n");
    folder_.write("aclImdb/test/neg/10_1.txt", "later on");
    folder_.write("aclImdb/test/neg/2_1.txt", "soon");
  }
  std::unique_ptr<Source> source(int64_t length = 100) const {
    return data::imdb(folder_.path(), length);
  }
  std::string text(Split split, int64_t index) const {
    std::string text;
    for (const int32_t token : source()->example(split, index).tokens)
      text += static_cast<char>(token - 1);
    return text;
  }
  Folder folder_;
};

TEST_F(Imdb, ByNumberNegativeFirstAndEveryTenthValidates) {
  const auto read = source();
  ASSERT_EQ(read->count(Split::train), 36);
  ASSERT_EQ(read->count(Split::validation), 4);
  ASSERT_EQ(read->count(Split::test), 3);
  EXPECT_EQ(text(Split::train, 0), "bad 0");
  EXPECT_EQ(text(Split::train, 1), "good 0");
  EXPECT_EQ(text(Split::train, 18), "bad 10");  // after 8: 9 validates
  EXPECT_EQ(text(Split::validation, 1), "good 9");
  EXPECT_EQ(text(Split::validation, 2), "bad 19");
  EXPECT_EQ(read->example(Split::train, 0).target, std::vector<int32_t>{0});
  EXPECT_EQ(read->example(Split::train, 1).target, std::vector<int32_t>{1});
  EXPECT_EQ(text(Split::test, 1), "soon");  // 2 before 10
  EXPECT_EQ(text(Split::test, 2), "later on");
  EXPECT_EQ(data::imdb(folder_.path() + "/aclImdb", 9)->count(Split::test), 3);
}

TEST_F(Imdb, TokensAreBytesPlusOneCutToTheLength) {
  EXPECT_EQ(source()->example(Split::test, 0).tokens, (std::vector<int32_t>{256, 11}));
  EXPECT_EQ(source(5)->example(Split::test, 2).tokens,
            (std::vector<int32_t>{'l' + 1, 'a' + 1, 't' + 1, 'e' + 1, 'r' + 1}));
}

TEST_F(Imdb, DocumentsOfAnEarlierSplitAreLeftOut) {
  folder_.write("aclImdb/test/neg/3_1.txt", "good 4");
  folder_.write("aclImdb/test/neg/4_1.txt", "bad 9");
  const auto read = source();
  EXPECT_EQ(read->count(Split::test), 3);
  EXPECT_EQ(read->duplicates(), 2);
}

TEST_F(Imdb, TheFingerprintFollowsNamesAndContents) {
  const std::string before = source()->fingerprint();
  folder_.write("aclImdb/train/pos/3_9.txt", "good 4");
  const std::string changed = source()->fingerprint();
  EXPECT_NE(changed, before);
  folder_.write("aclImdb/train/pos/3_9.txt", "good 3");
  EXPECT_EQ(source()->fingerprint(), before);
  folder_.remove("aclImdb/train/pos/3_9.txt");
  folder_.write("aclImdb/train/pos/3_8.txt", "good 3");
  EXPECT_NE(source()->fingerprint(), before);
}

TEST_F(Imdb, DamageIsOneLineThatNamesTheFile) {
  const auto said = [&](const std::string& name) {
    folder_.write(name, "");
    const std::string text = fault_of([&] { source(); });
    folder_.remove(name);
    return text;
  };
  EXPECT_NE(said("aclImdb/train/pos/77_7.txt").find("pos/77_7.txt: an empty"), std::string::npos);
  for (const char* name : {"77.txt", "a_7.txt", "7_.txt", "7_11.txt", "7_x.txt", "07_7.txt"})
    EXPECT_NE(said(std::string("aclImdb/test/neg/") + name)
                  .find(fmt::format("neg/{}: expected a name", name)),
              std::string::npos)
        << name;
  folder_.remove("aclImdb/test/pos");
  EXPECT_NE(fault_of([&] { source(); }).find("test/pos"), std::string::npos);
  folder_.remove("aclImdb/train");
  EXPECT_NE(fault_of([&] { source(); }).find("expected train/neg"), std::string::npos);
}

}  // namespace
}  // namespace attn::imdb_test
