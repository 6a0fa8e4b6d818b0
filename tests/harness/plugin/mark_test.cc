// Marks of plug-ins: found in a file's bytes, and the first difference named.
#include "harness/plugin/mark.h"
#include "tests/said.h"

#include <gtest/gtest.h>

#include <string>

namespace attn::mark_test {
namespace {

std::string with(std::string mark, const std::string& name, const std::string& value) {
  const size_t begin = mark.find("|" + name + "=") + name.size() + 2;
  return mark.replace(begin, mark.find('|', begin) - begin, value);
}

std::string in_double(const std::string& mark) { return with(mark, "real", "double"); }

std::string why(const std::string& mark) {
  return why_unfit({in_double(mark), mark}, own_mark(), true);
}

TEST(Mark, OwnMarkFits) {
  const std::string own = own_mark();
  EXPECT_EQ(why(own), "");
  EXPECT_EQ(why_unfit({own}, own, false), "");
}

TEST(Mark, EachDifferenceIsNamed) {
  for (const std::string name :
       {"version", "interface", "compiler", "library", "instructions", "checks"}) {
    const std::string text = why(with(own_mark(), name, "other"));
    EXPECT_TRUE(says(text, "other")) << name << ": " << text;
  }
  EXPECT_EQ(why_unfit({in_double(own_mark())}, own_mark(), true),
            "its `real` is double; this program's is float");
}

TEST(Mark, AnotherVersionOfTheCompilerFits) {
  const std::string own = with(own_mark(), "compiler", "g++ 12");
  const auto against = [&](const std::string& compiler) {
    return why_unfit({with(own, "compiler", compiler)}, own, false);
  };
  EXPECT_EQ(against("g++ 14"), "");
  EXPECT_EQ(against("clang++ 12"), "it was built by clang++ 12; this program by g++ 12");
  EXPECT_NE(against("g"), "");
}

TEST(Mark, AFileWithoutMarksIsNoPlugin) {
  EXPECT_TRUE(says(why_unfit({}, own_mark(), false), "no plug-in"));
}

TEST(Mark, TheDoubleBuildMustBeThereWhereItIsAskedFor) {
  EXPECT_TRUE(says(why_unfit({own_mark()}, own_mark(), true), "double"));
}

TEST(Mark, MarksAreFoundBetweenOtherBytes) {
  const std::string own = own_mark(), zero(1, '\0');
  const std::string file = "\177ELF" + zero + own + zero + "text" + in_double(own) + zero;
  EXPECT_EQ(marks_in(file), (std::vector<std::string>{own, in_double(own)}));
  EXPECT_TRUE(marks_in("\177ELF" + own).empty());  // cut off
  EXPECT_TRUE(marks_in("").empty());
}

}  // namespace
}  // namespace attn::mark_test
