// Readers of texts: AAN's pairs, IMDb's reviews and the files below them.
#include <gtest/gtest.h>

#include <filesystem>
#include <tuple>

#include <sys/stat.h>

#include "tasks/data/bytes.h"
#include "tasks/data/files.h"
#include "tasks/data/sources.h"
#include "tests/tasks/data/folder.h"
#include "tests/said.h"

namespace attn::data::texts_test {
namespace {

// Lines of files larger than a block, digests and numbers: what every reader stands on.

using Lines = std::vector<std::tuple<int64_t, int64_t, std::string>>;

Lines lines_of(const std::string& bytes) {
  const Folder folder;
  folder.write("lines", bytes);
  Lines lines;
  for_each_line(File(folder.path() + "/lines"),
                [&](int64_t number, int64_t offset, std::string_view text) {
                  lines.emplace_back(number, offset, text);
                });
  return lines;
}

TEST(Files, LinesWithTheirNumbersAndOffsets) {
  EXPECT_EQ(lines_of(""), Lines());
  EXPECT_EQ(lines_of("a\n\nbc\n"), (Lines{{1, 0, "a"}, {2, 2, ""}, {3, 3, "bc"}}));
  EXPECT_EQ(lines_of("a\r\nb"), (Lines{{1, 0, "a"}, {2, 3, "b"}}));
}

// The mark is no part of the first line; offsets are of the file. Elsewhere its bytes are a text's.
TEST(Files, AByteOrderMarkIsSkipped) {
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_EQ(lines_of(mark + "a\nb"), (Lines{{1, 3, "a"}, {2, 5, "b"}}));
  EXPECT_EQ(lines_of(mark + "\r\nb"), (Lines{{1, 3, ""}, {2, 5, "b"}}));
  EXPECT_EQ(lines_of("a\n" + mark + "b"), (Lines{{1, 0, "a"}, {2, 2, mark + "b"}}));
}

TEST(Files, LinesAcrossBlocks) {
  constexpr size_t kBlock = size_t{1} << 20;
  for (const size_t first : {kBlock - 1, kBlock, kBlock + 1, 3 * kBlock}) {
    const std::string a(first, 'x'), b = "end";
    EXPECT_EQ(lines_of(a + "\n" + b), (Lines{{1, 0, a}, {2, static_cast<int64_t>(first) + 1, b}}));
  }
}

TEST(Files, ReadsExactlyWhatIsAskedFor) {
  const Folder folder;
  folder.write("file", "0123456789");
  const File file(folder.path() + "/file");
  EXPECT_EQ(file.size(), 10);
  EXPECT_EQ(file.read(3, 4), "3456");
  EXPECT_TRUE(says(fault_of([&] { file.read(8, 4); }), "ends at byte 10"));
  EXPECT_TRUE(says(fault_of([&] { File(folder.path()); }), "not a file"));
  EXPECT_TRUE(says(fault_of([&] { File(folder.path() + "/none"); }), "none"));
}

TEST(Files, APipeIsNotWaitedFor) {
  const Folder folder;
  const std::string path = folder.path() + "/pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_TRUE(says(fault_of([&] { File{path}; }), "pipe': it is not a file"));
}

TEST(Files, ALineWithoutEndIsNotHeldInMemory) {
  const Folder folder;
  folder.write("zeros", "first\n");
  std::filesystem::resize_file(folder.path() + "/zeros", uintmax_t{1} << 32);  // takes no room
  const auto read = [&] {
    for_each_line(File(folder.path() + "/zeros"), [](int64_t, int64_t, std::string_view) {});
  };
  EXPECT_TRUE(says(fault_of(read), "zeros line 2: longer than"));
}

TEST(Files, ADigestSeesEveryByteAndBorder) {
  const auto digest = [](const std::vector<std::string>& parts) {
    Digest d;
    for (const std::string& part : parts) d.add(part);
    return d.value();
  };
  EXPECT_EQ(digest({"abcdefghi", "j"}), digest({"abcdefghi", "j"}));
  EXPECT_NE(digest({"abcdefghi", "j"}), digest({"abcdefgh", "ij"}));
  EXPECT_NE(digest({"abcdefghi"}), digest({"abcdefghj"}));
  EXPECT_NE(digest({std::string("a\0", 2)}), digest({"a"}));
}

TEST(Files, WholeNumbers) {
  EXPECT_EQ(whole_number("12"), 12);
  for (const char* text : {"", "-5", "1x", " 1", "99999999999999999999"})
    EXPECT_EQ(whole_number(text), -1) << text;
}

TEST(Files, NamesAreSorted) {
  const Folder folder;
  for (const char* name : {"c", "a", "d", "b"}) folder.write(name, "");
  EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"a", "b", "c", "d"}));
}

TEST(Files, WhatCannotBeWrittenIsAnError) {
  EXPECT_TRUE(says(fault_of([] { write_file("/dev/full", "x"); }), "/dev/full"));
  EXPECT_TRUE(says(fault_of([] { write_file("/nowhere/x", "x"); }), "/nowhere/x"));
  EXPECT_TRUE(says(fault_of([] { make_folder("/dev/null/x"); }), "/dev/null/x"));
}

// Pairs of papers in AAN's TSV form, written by hand: columns, labels, cuts, damage.

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
    EXPECT_TRUE(says(said, "new_aan_pairs.eval.tsv " + wanted));
  }
  write("eval", "");
  EXPECT_TRUE(says(fault_of([&] { source(); }), "validation split is empty"));
  folder_.remove("new_aan_pairs.eval.tsv");
  EXPECT_TRUE(says(fault_of([&] { source(); }), "new_aan_pairs.eval.tsv"));
  folder_.remove("new_aan_pairs.train.tsv");
  EXPECT_TRUE(says(fault_of([&] { source(); }), "expected new_aan_pairs.train.tsv"));
}

TEST_F(AanTsv, TheFingerprintFollowsTheContents) {
  const std::string before = source()->fingerprint();
  EXPECT_EQ(source(3)->fingerprint(), before);
  write("test", "1\tG\tH\tseven\teight\n");
  EXPECT_NE(source()->fingerprint(), before);
}

// IMDb review files written by hand: order, the validation documents, damage.

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
  EXPECT_TRUE(says(said("aclImdb/train/pos/77_7.txt"), "pos/77_7.txt: an empty"));
  for (const char* name : {"77.txt", "a_7.txt", "7_.txt", "7_11.txt", "7_x.txt", "07_7.txt"})
    EXPECT_TRUE(says(said(std::string("aclImdb/test/neg/") + name),
                     fmt::format("neg/{}: expected a name", name)))
        << name;
  folder_.remove("aclImdb/test/pos");
  EXPECT_TRUE(says(fault_of([&] { source(); }), "test/pos"));
  folder_.remove("aclImdb/train");
  EXPECT_TRUE(says(fault_of([&] { source(); }), "expected train/neg"));
}

}  // namespace
}  // namespace attn::data::texts_test
