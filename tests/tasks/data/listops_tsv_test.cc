// ListOps TSV files written by hand, in the form of the release: what is read of them, and what is
// said of damaged ones.
#include <gtest/gtest.h>

#include <thread>

#include "tasks/catalog.h"
#include "tests/tasks/data/folder.h"
#include "tests/said.h"

namespace attn::listops_tsv_test {
namespace {

const std::string kHead = "Source\tTarget\n";
const std::string kTree = "( ( ( [MAX 4 ) 3 ) ] )\t4\n";
const std::string kDeep = "( ( ( ( [SM 9 ) ( ( ( [MED 2 ) 7 ) ] ) ) 5 ) ] )\t8\n";  // 9 + 4 + 5

class ListopsTsv : public testing::Test {
 protected:
  ListopsTsv() {
    folder_.write("basic_train.tsv", kHead + kTree + kDeep);
    folder_.write("basic_val.tsv", kHead + "( ( ( [MIN 4 ) 3 ) ] )\t3\n");
    folder_.write("basic_test.tsv", kHead + "7\t7");
  }
  std::unique_ptr<Task> task(int64_t length = 40) const {
    return find_task("listops").build({{"data", folder_.path()}, {"length", length}});
  }
  // What is said when the training file holds `lines` below its header.
  std::string fault(const std::string& lines) {
    folder_.write("basic_train.tsv", kHead + lines);
    return fault_of([&] { task()->example(0, Split::train, 0); });
  }
  Folder folder_;
};

TEST_F(ListopsTsv, TokensLabelsAndEvidence) {
  const auto read = task();
  EXPECT_EQ(read->count(Split::train), 2);
  EXPECT_EQ(read->count(Split::validation), 1);
  EXPECT_EQ(read->count(Split::test), 1);
  const Example tree = read->example(0, Split::train, 0);
  EXPECT_EQ(tree.tokens, (std::vector<int32_t>{12, 5, 4, 15}));
  EXPECT_EQ(tree.target, std::vector<int32_t>{4});
  EXPECT_EQ(tree.evidence, (std::vector<int32_t>{1, 2}));
  const Example deep = read->example(7, Split::train, 1);  // the seed plays no part
  EXPECT_EQ(deep.tokens, (std::vector<int32_t>{14, 10, 13, 3, 8, 15, 6, 15}));
  EXPECT_EQ(deep.target, std::vector<int32_t>{8});
  EXPECT_EQ(deep.slices.at("depth"), 2);
  EXPECT_EQ(read->example(0, Split::validation, 0).target, std::vector<int32_t>{3});
  EXPECT_EQ(read->example(0, Split::test, 0).tokens, std::vector<int32_t>{8});
  EXPECT_THROW(read->example(0, Split::test, 1), Error);
}

TEST_F(ListopsTsv, LongTreesAreCutAndHaveNoEvidence) {
  const Example deep = task(6)->example(0, Split::train, 1);
  EXPECT_EQ(deep.tokens, (std::vector<int32_t>{14, 10, 13, 3, 8, 15}));
  EXPECT_EQ(deep.target, std::vector<int32_t>{8});
  EXPECT_TRUE(deep.evidence.empty());
}

TEST_F(ListopsTsv, TheReleasesSubfolderIsFound) {
  const Folder outer;
  for (const char* name : {"train", "val", "test"})
    outer.write(fmt::format("listops-1000/basic_{}.tsv", name),
                kHead + fmt::format("{0}\t{0}\n", std::string(name).size()));
  EXPECT_EQ(find_task("listops").build({{"data", outer.path()}})->example(0, Split::test, 0).target,
            std::vector<int32_t>{4});
}

TEST_F(ListopsTsv, InputsOfAnEarlierSplitAreLeftOut) {
  folder_.write("basic_val.tsv", kHead + kTree + "5\t5\n" + kDeep);
  folder_.write("basic_test.tsv", kHead + "5\t5\n6\t6\n6\t6\n");
  const auto read = task();
  EXPECT_EQ(read->count(Split::validation), 1);
  EXPECT_EQ(read->example(0, Split::validation, 0).target, std::vector<int32_t>{5});
  EXPECT_EQ(read->count(Split::test), 2);  // twice in one split: stays
  EXPECT_EQ(read->source()->duplicates(), 3);
  folder_.write("basic_val.tsv", kHead + kTree);
  EXPECT_TRUE(says(fault_of([&] { task(); }), "validation split is empty (1 duplicates"));
}

TEST_F(ListopsTsv, TheFingerprintFollowsTheContents) {
  const std::string before = task()->source()->fingerprint();
  EXPECT_EQ(before.size(), 16U);
  EXPECT_EQ(task()->source()->fingerprint(), before);
  folder_.write("basic_test.tsv", kHead + "8\t8");
  EXPECT_NE(task()->source()->fingerprint(), before);
}

TEST_F(ListopsTsv, DamageIsOneLineThatNamesFileAndLine) {
  const std::string good = kTree;
  const std::pair<std::string, std::string> cases[] = {
      {good + "( ( ( [MAX 4 ) 3 ) ] )\n", "line 3: expected two columns"},
      {good + "7\t7\t7\n", "line 3: expected two columns"},
      {good + "7\t10\n", "line 3: label '10'; expected 0 to 9"},
      {good + "7\t\n", "line 3: label ''"},
      {good + "( ( ( [MEAN 4 ) 3 ) ] )\t4\n", "line 3: unknown token '[MEAN'"},
      {good + "( ( ( [MAX 4 ) 3 ) )\t4\n", "line 3: the tree is not complete"},
      {good + "( [MAX ] )\t4\n", "line 3: ']' (token 2) does not fit"},
      {good + "] 4\t4\n", "line 3: ']' (token 1) does not fit"},
      {good + "4 4\t4\n", "line 3: '4' (token 2) does not fit"},
      {good + "\t4\n", "line 3: the tree is not complete"},
      {"( ( ( [MAX 4 ) 3 ) ] )\t3\n", "line 2: label 3; the tree's value is 4"},
      {"", "train split is empty"},
  };
  for (const auto& [lines, wanted] : cases) {
    const std::string said = fault(lines);
    EXPECT_TRUE(says(said, wanted)) << lines << "gives: " << said;
    EXPECT_TRUE(says(said, folder_.path()));
    EXPECT_FALSE(says(said, "\n"));
  }
  folder_.write("basic_train.tsv", kTree);
  EXPECT_TRUE(says(fault_of([&] { task(); }), "line 1"));
  folder_.remove("basic_test.tsv");
  EXPECT_TRUE(says(fault_of([&] { task(); }), "basic_train.tsv line 1"));
  folder_.write("basic_train.tsv", kHead + kTree);
  EXPECT_TRUE(says(fault_of([&] { task(); }), "basic_test.tsv"));
  folder_.remove("basic_train.tsv");
  EXPECT_TRUE(says(fault_of([&] { task(); }), "expected basic_train.tsv"));
  folder_.remove("");
  EXPECT_TRUE(says(fault_of([&] { task(); }), "no such folder"));
}

TEST_F(ListopsTsv, ATreeTooDeepToEvaluateIsRefused) {
  const auto nested = [](int levels) {
    std::string tree;
    for (int i = 0; i < levels; i++) tree += "[MAX ";
    tree += "7";
    for (int i = 0; i < levels; i++) tree += " ]";
    return tree + "\t7\n";
  };
  const auto said = [&](int levels) {
    folder_.write("basic_train.tsv", kHead + nested(levels));
    return fault_of([&] {
      find_task("listops")
          .build({{"data", folder_.path()}, {"length", int64_t{1'000'000}}})
          ->example(0, Split::train, 0);
    });
  };
  EXPECT_EQ(said(1000), "");
  EXPECT_TRUE(says(said(200'000), "line 2: '[MAX' (token 1001) does not fit"));
}

TEST_F(ListopsTsv, ThreadsReadWhatOneThreadReads) {
  std::string lines = kHead;
  for (int i = 0; i < 1000; i++)
    lines += fmt::format("( ( ( ( ( [SM {} ) {} ) {} ) {} ) ] )\t{}\n", i % 10, i / 10 % 10,
                         i / 100, 3, (i % 10 + i / 10 % 10 + i / 100 + 3) % 10);
  folder_.write("basic_train.tsv", lines);
  const auto read = task();
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < wrong.size(); t++)
    threads.emplace_back([&, t] {
      for (int32_t i = 0; i < 1000; i++) {
        const Example e = read->example(0, Split::train, i);
        const std::vector<int32_t> tokens = {14, 1 + i % 10, 1 + i / 10 % 10, 1 + i / 100, 4, 15};
        wrong[t] += e.tokens != tokens;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace attn::listops_tsv_test
