// Reports of a comparison: order, notes, and names that would break JSON, XML or LaTeX.
#include "harness/compare/report.h"

#include <gtest/gtest.h>

#include "tests/harness/compare/rows_of_sweep.h"

namespace attn::report_test {
namespace {

using namespace rows_of_sweep;

// One pair the same, one worse, one better, one left out, one of a hostile name.
Comparison mixed() {
  Row failed = memory("full", 16, 10);
  failed.result = {.status = Status::oom, .reason = "a & b"};
  Row hostile = memory("full", 1, 10), larger = memory("full", 1, 20);
  hostile.key.variant = larger.key.variant = {.name = "a<b>&\"'|_%\x01\xEF\xBF\xBF", .params = {}};
  return compare(
      file({memory("full", 2, 10), memory("full", 4, 10), memory("full", 8, 10),
            memory("full", 16, 10), memory("full", 32, 10), hostile}),
      file({memory("full", 2, 10), memory("full", 4, 20), memory("full", 8, 5), failed, larger}),
      {});
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Report, TablesBeginWithWhatBecameWorse) {
  const std::vector<Table> tables = comparison_tables(mixed());
  ASSERT_EQ(tables.size(), 2u);
  ASSERT_EQ(tables[0].rows.size(), 4u);
  std::vector<std::string> verdicts;
  for (const auto& line : tables[0].rows) verdicts.push_back(line[6]);
  EXPECT_EQ(verdicts,
            (std::vector<std::string>{"more memory", "more memory", "less memory", "same"}));
  EXPECT_EQ(tables[1].rows[0], (std::vector<std::string>{"memory", "2", "1", "0", "1", "1"}));
  EXPECT_EQ(tables[1].notes, (std::vector<std::string>{"memory not compared: 1: NEW: oom: a & b",
                                                       "only in OLD: 1"}));
}

TEST(Report, JsonHoldsEveryPair) {
  const Json json = comparison_json(mixed());
  EXPECT_EQ(json["pairs"].size(), 4u);
  EXPECT_EQ(json["left_out"][0]["reason"], "NEW: oom: a & b");
  EXPECT_EQ(json["only_in_old"], 1);
  EXPECT_EQ(json["regression"], true);
  EXPECT_EQ(json["pairs"][1]["value"], 2.0);
  EXPECT_EQ(json["pairs"][1]["verdict"], "worse");
  EXPECT_EQ(non_finite_place(json), "");
}

TEST(Report, JunitFailsForWhatBecameWorse) {
  const std::string xml = junit_xml(mixed());
  EXPECT_TRUE(holds(xml, "tests=\"5\" failures=\"2\" errors=\"0\" skipped=\"1\"")) << xml;
  EXPECT_TRUE(holds(xml, "name=\"full length=4\"><failure ")) << xml;
  EXPECT_TRUE(holds(xml, "<skipped message=\"NEW: oom: a &amp; b\"/>")) << xml;
  EXPECT_TRUE(holds(xml, "name=\"a&lt;b&gt;&amp;&quot;'|_%\\x01? length=1\"")) << xml;
  EXPECT_FALSE(holds(xml, "\x01"));
}

TEST(Report, LatexIsEscaped) {
  const std::string text = render_latex({.title = "50 % of_a",
                                         .columns = {"variant", "±"},
                                         .rows = {{"[a]{b}\\$#&~^<|>\"", "1\n2"}},
                                         .notes = {"n_1"}});
  EXPECT_TRUE(holds(text, "\\caption{50 \\% of\\_a}")) << text;
  EXPECT_TRUE(holds(text, "variant & $\\pm$ \\\\\n")) << text;
  EXPECT_TRUE(holds(text,
                    "{}[a]\\{b\\}\\textbackslash{}\\$\\#\\&\\textasciitilde{}"
                    "\\textasciicircum{}\\textless{}\\textbar{}\\textgreater{}"
                    "\\textquotedbl{} & 1 2 \\\\\n"))
      << text;
  EXPECT_TRUE(holds(text, "\\footnotesize n\\_1")) << text;
  EXPECT_TRUE(holds(text, "\\begin{tabular}{lr}")) << text;
}

TEST(Report, ABarDoesNotEndACellOfMarkdown) {
  EXPECT_TRUE(
      holds(render_markdown({.title = "t", .columns = {"c"}, .rows = {{"a|b"}}, .notes = {}}),
            "| a\\|b |"));
}

}  // namespace
}  // namespace attn::report_test
