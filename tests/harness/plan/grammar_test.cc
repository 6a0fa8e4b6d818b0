// The sweep grammar: what it accepts, how ranges expand, and that every error quotes the offending
// text.
#include "harness/plan/grammar.h"

#include <gtest/gtest.h>

#include "core/base/check.h"

namespace attn::grammar_test {
namespace {

using Values = std::vector<std::string>;

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Values values(std::string_view text) { return expand_values("axis length", text); }

TEST(Grammar, ReadsANameAlone) {
  const Spec spec = parse_spec(" linear ");
  EXPECT_EQ(spec.name, "linear");
  EXPECT_TRUE(spec.settings.empty());
  EXPECT_TRUE(parse_spec("full[]").settings.empty());
}

TEST(Grammar, ReadsParametersListsAndRanges) {
  const Spec spec = parse_spec("listops[length=128:512:*2,max_depth=6, p=[0.5,1:2:+1]]");
  EXPECT_EQ(spec.name, "listops");
  ASSERT_EQ(spec.settings.size(), 3u);
  EXPECT_EQ(spec.settings[0].name, "length");
  EXPECT_EQ(spec.settings[0].values, (Values{"128", "256", "512"}));
  EXPECT_EQ(spec.settings[1].values, (Values{"6"}));
  EXPECT_EQ(spec.settings[2].name, "p");
  EXPECT_EQ(spec.settings[2].values, (Values{"0.5", "1", "2"}));
}

TEST(Grammar, ReadsAFileOfPythonAndANameInIt) {
  const Spec spec = parse_spec("python:../my own/a.b.py:Cosine[scale=[4,8]]");
  EXPECT_EQ(spec.name, "python:../my own/a.b.py:Cosine");
  ASSERT_EQ(spec.settings.size(), 1u);
  EXPECT_EQ(spec.settings[0].values, (Values{"4", "8"}));
  EXPECT_EQ(parse_spec("python:mine.py:softmax").name, "python:mine.py:softmax");
}

TEST(Grammar, RangesIncludeTheirEnds) {
  EXPECT_EQ(values("256:4096:*2"), (Values{"256", "512", "1024", "2048", "4096"}));
  EXPECT_EQ(values("1:10:+3"), (Values{"1", "4", "7", "10"}));
  EXPECT_EQ(values("1:9:+3"), (Values{"1", "4", "7"}));
  EXPECT_EQ(values("0.1:0.3:+0.1"), (Values{"0.1", "0.2", "0.3"}));
  EXPECT_EQ(values("0.5:4:*2"), (Values{"0.5", "1", "2", "4"}));
  EXPECT_EQ(values("7:7:*2"), (Values{"7"}));
  EXPECT_EQ(values("1048576:1048578:+1"), (Values{"1048576", "1048577", "1048578"}));
}

TEST(Grammar, ListsKeepTheirOrder) {
  EXPECT_EQ(values("8,2,4:8:*2"), (Values{"8", "2", "4", "8"}));
  EXPECT_EQ(values("[8,2]"), (Values{"8", "2"}));
  EXPECT_EQ(values("false,true"), (Values{"false", "true"}));
}

TEST(Grammar, ErrorsQuoteTheText) {
  const auto quotes = [](const std::string& text, const std::string& part,
                         const std::string& hint) {
    const std::string error = error_of([&] { parse_spec(text); });
    EXPECT_NE(error.find(part), std::string::npos) << error;
    EXPECT_NE(error.find(hint), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  };
  quotes("linformer[rank=64,128]", "'128'", "param=[v,v]");
  quotes("linformer[rank=[64,128]", "'rank=[64,128'", "']'");
  quotes("linformer]", "']'", "after the name");
  quotes("linformer[rank=64]x", "'linformer[rank=64]x'", "does not end");
  quotes("[rank=64]", "'[rank=64]'", "begin with a name");
  quotes("", "''", "begin with a name");
  quotes("linformer[rank=]", "rank", "empty value");
  quotes("linformer[=64]", "'=64'", "param=value");
  quotes("linformer[rank=1,rank=2]", "'rank'", "twice");
  quotes("linformer[rank=a:b:*2]", "'a:b:*2'", "start with a number");
}

TEST(Grammar, RefusesRangesThatDoNotEnd) {
  for (const char* text : {"1:8", "1:8:2", "1:8:*", "1:8:*1", "0:8:*2", "1:8:+0", "8:1:*2",
                           "1:8:+-1", "1:x:+1", "1:8:*2:3", "1:1000000:+1", "nan:8:+1", "1:inf:*2"})
    EXPECT_NE(error_of([&] { values(text); }).find(text), std::string::npos) << text;
  for (const char* text : {"", ",", "1,,2", "1,"}) EXPECT_THROW(values(text), Error) << text;
}

// Each would be held once for each of up to 20000 combinations.
TEST(Grammar, TooManyParametersAreAnError) {
  std::string text = "a0=1";
  for (int i = 1; i < 100; i++) text += fmt::format(",a{}=1", i);
  EXPECT_EQ(parse_settings(text).size(), 100u);
  EXPECT_NE(error_of([&] { parse_settings(text + ",b=1"); }).find("more than 100 parameters"),
            std::string::npos);
}

TEST(Grammar, CrossProductVariesTheLastFastest) {
  const auto choices = cross_product({{"a", {"1", "2"}}, {"b", {"x", "y"}}});
  ASSERT_EQ(choices.size(), 4u);
  EXPECT_EQ(choices[1], (Choice{{"a", "1"}, {"b", "y"}}));
  EXPECT_EQ(choices[2], (Choice{{"a", "2"}, {"b", "x"}}));
  EXPECT_EQ(cross_product({}).size(), 1u);
}

TEST(Grammar, OverlayReplacesAndAdds) {
  const auto settings = overlay({{"a", {"1"}}, {"b", {"2"}}}, {{"b", {"3", "4"}}, {"c", {"5"}}});
  ASSERT_EQ(settings.size(), 3u);
  EXPECT_EQ(settings[0].values, (Values{"1"}));
  EXPECT_EQ(settings[1].values, (Values{"3", "4"}));
  EXPECT_EQ(settings[2].name, "c");
}

TEST(Grammar, TooManyCombinationsAreAnError) {
  const std::vector<Setting> settings = {{"length", values("1:1000:+1")},
                                         {"heads", values("1:1000:+1")}};
  EXPECT_EQ(error_of([&] { cross_product(settings); }),
            "more than 20000 combinations with the 1000 values of heads; ask for fewer");
}

}  // namespace
}  // namespace attn::grammar_test
