// Rows files as one: doubles, contradictions, machines, and files that were merged before.
#include "harness/store/merged.h"

#include <gtest/gtest.h>

#include "core/base/check.h"
#include "tests/harness/store/sample_rows.h"
#include "tests/said.h"

namespace attn::merged_test {
namespace {

Json run(const std::string& id, const std::string& cpu = "a") {
  Json line = sample_run();
  line["run"] = id;
  line["environment"]["cpu_model"] = cpu;
  return line;
}

Json cell(const std::string& run, const std::string& id, double median = 0.5) {
  Json line = sample_cell("speed");
  line["run"] = run;
  line["cell"] = id + std::string(16 - id.size(), '0');
  line["metrics"]["time_s"]["median"] = median;
  return line;
}

std::string merge_fault(const std::vector<NamedRows>& files, Keep keep = Keep::none) {
  return fault_of([&] { merge_rows(files, keep); });
}

TEST(MergedRows, PartsStandBehindEachOtherRunByRun) {
  const MergedRows merged = merge_rows(
      {{"a", {run("r1"), cell("r1", "1"), cell("r1", "2")}}, {"b", {run("r2"), cell("r2", "3")}}},
      Keep::none);
  ASSERT_EQ(merged.lines.size(), 5u);
  EXPECT_EQ(merged.lines[0]["merged"], true);
  EXPECT_EQ(merged.lines[1], cell("r1", "1")) << "a row is as it was measured";
  EXPECT_EQ(merged.lines[3]["run"], "r2");
  EXPECT_EQ(merged.lines[4], cell("r2", "3"));
  EXPECT_EQ(merged.runs, 2u);
  EXPECT_EQ(merged.cells, 3u);
  EXPECT_EQ(merged.doubles, 0u);
  std::string text;
  for (const Json& line : merged.lines) text += row_line("m", line);
  EXPECT_EQ(parse_rows("m", text), merged.lines);
}

TEST(MergedRows, ExactDoublesAreDropped) {
  const NamedRows part = {"a", {run("r1"), cell("r1", "1")}};
  const NamedRows whole = {"b", {run("r1"), cell("r1", "1"), cell("r1", "2")}};
  const MergedRows merged = merge_rows({part, whole, part}, Keep::none);
  EXPECT_EQ(merged.lines.size(), 3u) << "one run line, two cells";
  EXPECT_EQ(merged.doubles, 2u);
  const NamedRows before = {"m", merged.lines};
  const MergedRows again = merge_rows({before, part}, Keep::none);
  EXPECT_EQ(again.lines, merged.lines) << "merging what was merged changes nothing";
}

TEST(MergedRows, ARunThatWasWidenedKeepsItsRunLines) {
  Json wider = run("r1");
  wider["argv"] = {"attnbench", "run", "--length", "64"};
  const MergedRows merged =
      merge_rows({{"a", {run("r1"), cell("r1", "1"), wider, cell("r1", "2")}}}, Keep::none);
  ASSERT_EQ(merged.lines.size(), 4u);
  EXPECT_EQ(merged.lines[1]["argv"], wider["argv"]);
  EXPECT_EQ(merged.runs, 1u);
}

TEST(MergedRows, AChangedRowIsAContradiction) {
  const std::string fault = merge_fault(
      {{"a", {run("r1"), cell("r1", "1", 0.5)}}, {"b", {run("r1"), cell("r1", "1", 0.6)}}},
      Keep::last);
  EXPECT_TRUE(says(fault, "a:2 and b:2"));
}

TEST(MergedRows, ACellMeasuredTwiceIsTakenOnceAsToldElseRefused) {
  const std::vector<NamedRows> files = {{"a", {run("r1"), cell("r1", "1", 0.5), cell("r1", "2")}},
                                        {"b", {run("r2"), cell("r2", "1", 0.6)}},
                                        {"c", {run("r3"), cell("r3", "1", 0.7), cell("r3", "3")}}};
  const std::string fault = merge_fault(files);
  EXPECT_TRUE(says(fault, "a:2 and b:2"));
  EXPECT_TRUE(says(fault, "--keep"));
  const auto medians = [](const MergedRows& merged) {
    std::vector<double> found;
    for (const Json& line : merged.lines)
      if (is_cell(line) && line["cell"] == cell("", "1")["cell"])
        found.push_back(line["metrics"]["time_s"]["median"]);
    return found;
  };
  const MergedRows first = merge_rows(files, Keep::first), last = merge_rows(files, Keep::last);
  EXPECT_EQ(medians(first), std::vector<double>({0.5}));
  EXPECT_EQ(medians(last), std::vector<double>({0.7}));
  for (const MergedRows& merged : {first, last}) {
    EXPECT_EQ(merged.cells, 3u);
    EXPECT_EQ(merged.replaced, 2u);
  }
}

TEST(MergedRows, MachinesAndBuildsStandBesideEachOther) {
  Json later = run("r3");
  later["environment"]["load_before"] = 7.0;
  later["environment"]["calibration"]["copy_bytes_per_s"] = 1e10;
  const NamedRows a = {"a", {run("r1"), cell("r1", "1")}},
                  b = {"b", {run("r2", "other"), cell("r2", "1")}};
  EXPECT_EQ(merge_rows({a, b}, Keep::none).cells, 2u);
  EXPECT_NE(merge_fault({a, {"c", {later, cell("r3", "1")}}}), "") << "load makes no other machine";
}

TEST(MergedRows, FilesJoinedByHandAndMergedFilesToGoOnWithAreRefused) {
  const auto text = [](const std::vector<Json>& lines) {
    std::string all;
    for (const Json& line : lines) all += row_line("x", line);
    return all;
  };
  Json marked = run("r2");
  marked["merged"] = true;
  for (const std::vector<Json>& lines :
       {std::vector<Json>{run("r1"), cell("r1", "1"), run("r2"), cell("r2", "1")},
        {run("r1"), marked, cell("r2", "1")},
        {marked, cell("r3", "1")}})
    EXPECT_THROW(parse_rows("x", text(lines)), Error);
}

}  // namespace
}  // namespace attn::merged_test
