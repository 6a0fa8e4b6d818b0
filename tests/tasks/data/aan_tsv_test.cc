// Pairs of papers in AAN's TSV form, written by hand: columns, labels, cuts, damage.
#include <gtest/gtest.h>

#include "tasks/data/bytes.h"
#include "tasks/data/sources.h"
#include "tests/tasks/data/folder.h"

namespace attn::aan_tsv_test {
namespace {

using data::text_of;

class AanTsv : public testing::Test {
 protected:
  AanTsv() {
    write("train", "1.0\tA00-1\tB00-2\tfirst text\tsecond\n0.0\tC\tD\t\"quoted\" it's\tother\r\n");
    write("eval", "1\tE\tF\tfive\tsix");
    write("test", "0\tG\tH\tseven\teight\n");
  }
  void write(const std::string& split, const std::string& lines) const {
    folder_.write("new_aan_pairs." + split + ".tsv", lines);
  }
  std::unique_ptr<Source> source(int64_t length = 4000) const {
    return data::aan_tsv(folder_.path(), length);
  }
  Folder folder_;
};

TEST_F(AanTsv, TwoTextsAndALabel) {
  const auto read = source();
  ASSERT_EQ(read->count(Split::train), 2);
  const Example first = read->example(Split::train, 0), quoted = read->example(Split::train, 1);
  EXPECT_EQ(text_of(first.tokens), "first text");
  EXPECT_EQ(text_of(first.second), "second");
  EXPECT_EQ(first.target, std::vector<int32_t>{1});
  EXPECT_EQ(text_of(quoted.tokens), "\"quoted\" it's");
  EXPECT_EQ(text_of(quoted.second), "other");
  EXPECT_EQ(quoted.target, std::vector<int32_t>{0});
  EXPECT_EQ(text_of(read->example(Split::validation, 0).second), "six");
  EXPECT_EQ(read->example(Split::test, 0).target, std::vector<int32_t>{0});
}

TEST_F(AanTsv, EachTextIsCutToTheLength) {
  const Example e = source(5)->example(Split::train, 0);
  EXPECT_EQ(text_of(e.tokens), "first");
  EXPECT_EQ(text_of(e.second), "secon");
}

TEST_F(AanTsv, TenThousandCharactersCountWhateverTheirBytes) {
  std::string accents;
  for (int i = 0; i < 12'000; i++) accents += "\xc3\xa9";
  write("test", "0\tG\tH\t" + accents + "\t" + std::string(12'000, 'x') + "\n");
  const Example e = source(50'000)->example(Split::test, 0);
  EXPECT_EQ(e.tokens.size(), 20'000U);
  EXPECT_EQ(e.second.size(), 10'000U);
  EXPECT_EQ(source(4000)->example(Split::test, 0).tokens.size(), 4000U);
}

TEST_F(AanTsv, PairsOfAnEarlierSplitAreLeftOut) {
  write("eval", "0\tE\tF\tfirst text\tsecond\n1\tE\tF\tfirst text\tother\n");
  const auto read = source();
  EXPECT_EQ(read->count(Split::validation), 1);
  EXPECT_EQ(read->duplicates(), 1);
}

TEST_F(AanTsv, APairTheOtherWayRoundIsTheSamePair) {
  write("test", "1\tB\tA\tsecond\tfirst text\n0\tG\tH\tsecond\tfirst\n");
  EXPECT_EQ(source()->duplicates(), 1);
  write("test", "0\tG\tH\tzebra\tape\n");
  EXPECT_EQ(text_of(source()->example(Split::test, 0).tokens), "zebra");  // the order stays
}

TEST_F(AanTsv, DamageIsOneLineThatNamesFileAndLine) {
  const std::pair<std::string, std::string> cases[] = {
      {"1\tA\tB\ttext\n", "line 2: 4 columns; expected 5"},
      {"1\tA\tB\ttext\tmore\tand more\n", "line 2: 6 columns; expected 5"},
      {"\n", "line 2: 1 columns; expected 5"},
      {"2\tA\tB\ttext\tmore\n", "line 2: label '2'; expected 0 or 1"},
      {"label\tA\tB\ttext\tmore\n", "line 2: label 'label'"},
      {"1\tA\tB\t\tmore\n", "line 2: an empty text"},
      {"1\tA\tB\ttext\t\r\n", "line 2: an empty text"},
  };
  for (const auto& [line, wanted] : cases) {
    write("eval", "1\tE\tF\tfive\tsix\n" + line);
    const std::string said = fault_of([&] { source(); });
    EXPECT_NE(said.find("new_aan_pairs.eval.tsv " + wanted), std::string::npos) << said;
  }
  write("eval", "");
  EXPECT_NE(fault_of([&] { source(); }).find("validation split is empty"), std::string::npos);
  folder_.remove("new_aan_pairs.eval.tsv");
  EXPECT_NE(fault_of([&] { source(); }).find("new_aan_pairs.eval.tsv"), std::string::npos);
  folder_.remove("new_aan_pairs.train.tsv");
  EXPECT_NE(fault_of([&] { source(); }).find("expected new_aan_pairs.train.tsv"),
            std::string::npos);
}

TEST_F(AanTsv, TheFingerprintFollowsTheContents) {
  const std::string before = source()->fingerprint();
  EXPECT_EQ(source(3)->fingerprint(), before);
  write("test", "1\tG\tH\tseven\teight\n");
  EXPECT_NE(source()->fingerprint(), before);
}

}  // namespace
}  // namespace attn::aan_tsv_test
