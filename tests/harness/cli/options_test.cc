// Config files and what is wrong with them, and messages of Boost.Program_options.
#include "harness/cli/options.h"

#include <gtest/gtest.h>

#include <sstream>

#include "core/base/check.h"
#include "tests/tasks/data/folder.h"

namespace attn::options_test {
namespace {

const cli::Verb kVerb = {
    .name = "run",
    .usage = "",
    .summary = "",
    .options = {
        {"variant", 'v', "SPEC", "", true}, {"length", 0, "LIST", ""}, {"quiet", 'q', "", ""}}};

cli::Arguments merged(const std::string& text) {
  cli::Arguments arguments;
  std::istringstream file(text);
  arguments.merge_config(file, "sweep.conf", kVerb);
  return arguments;
}

TEST(Options, AConfigFileIsLinesOfNameAndValue) {
  const cli::Arguments found = merged(
      "# a sweep\r\n\n  variant = full  # "
      "exact\nvariant=linformer[rank=64]\n\tlength=\"64,128\"\nquiet = false");
  EXPECT_EQ(found.all("variant"), (std::vector<std::string>{"full", "linformer[rank=64]"}));
  EXPECT_EQ(found.get("length"), "64,128");
  EXPECT_FALSE(found.has("quiet"));
}

TEST(Options, AByteOrderMarkOfAConfigFileIsSkipped) {
  EXPECT_EQ(merged("\xEF\xBB\xBFlength = 64\n").get("length"), "64");
}

TEST(Options, AnOptionLikeNoneGetsNoSuggestion) {
  EXPECT_EQ(fault_of([] { merged("zzz = 1"); }),
            "sweep.conf: unknown option 'zzz' (attnbench run --help lists them)");
}

TEST(Options, AFaultOfAConfigFileIsNamed) {
  EXPECT_EQ(fault_of([] { merged("length = 64\n[section]\n"); }),
            "sweep.conf: line 2: '[section]' is not name = value");
  EXPECT_EQ(fault_of([] { merged(" = 64"); }), "sweep.conf: line 1: '= 64' is not name = value");
  EXPECT_NE(fault_of([] { merged("lenght = 64"); }).find("nearest is 'length'"), std::string::npos);
  EXPECT_NE(fault_of([] { merged("length = 64\nlength = 5"); }).find("given twice"),
            std::string::npos);
  EXPECT_NE(fault_of([] { merged("quiet = maybe"); }).find("expected true or false"),
            std::string::npos);
}

// Boost replaces marks in its messages until none is left.
TEST(Options, AnOptionNamedAsAMarkIsRefused) {
  EXPECT_EQ(fault_of([] { merged("%invalid_line%"); }),
            "sweep.conf: line 1: '%invalid_line%' is not name = value");
  EXPECT_EQ(fault_of([] { parse(kVerb, {"--%canonical_option%="}); }),
            "the argument for option '--%canonical_option%' should follow immediately after the "
            "equal sign");
  EXPECT_EQ(fault_of([] { parse(kVerb, {"--quiet=1"}); }),
            "option '--quiet' does not take any arguments");
}

}  // namespace
}  // namespace attn::options_test
