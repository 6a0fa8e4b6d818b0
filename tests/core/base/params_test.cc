// Conditions that are checked, and the parameters of variants and tasks.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/check.h"
#include "core/base/io_error.h"
#include "core/base/nearest.h"
#include "core/base/params.h"
#include "tests/said.h"

namespace attn::params_test {
namespace {

// An Error is one line, whatever the input that it quotes.

TEST(Check, AMessageIsOneLine) {
  const std::string quoted = "Gr\u00fc\u00dfe\n\tb\x1b[31m\x7f";
  const std::string line = "'Gr\u00fc\u00dfe\\n\\tb\\x1b[31m\\x7f'";
  try {
    ATTN_CHECK(false, "'{}'", quoted);
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), line);
  }
  try {
    ATTN_IO_CHECK(false, "'{}'", quoted);
  } catch (const IoError& error) {
    EXPECT_EQ(error.what(), line);
  }
}

// Typed parameters: defaults, ranges, parsing that reads back what was printed, and errors that
// name the nearest.

std::vector<ParamSpec> specs() {
  return {{"rank", 64, "rows", 1, 4096},
          {"rate", 0.25, "share", 0.0, 1.0},
          {"shared", true, "one for all heads"},
          {"kernel", std::vector<std::string>{"tiled", "materialized"}, "which"},
          {"note", std::vector<std::string>{""}, "free text"}};
}

TEST(Params, ValuesWithoutEffectAreRefused) {
  const std::vector<ParamSpec> list = {
      {"kind", std::vector<std::string>{"plain", "low", "lower"}, "which"},
      ParamSpec("rank", 8, "columns").when("kind", "low").when("kind", "lower")};
  const std::string low = "low", lower = "lower", plain = "plain";
  EXPECT_EQ(Params("it", list, {{"kind", low}, {"rank", int64_t{3}}}).integer("rank"), 3);
  EXPECT_EQ(Params("it", list, {{"kind", lower}, {"rank", int64_t{3}}}).integer("rank"), 3);
  EXPECT_EQ(Params("it", list, {{"kind", plain}, {"rank", int64_t{8}}}).integer("rank"), 8)
      << "a row names the default too";
  EXPECT_EQ(fault_of([&] {
              Params("it", list, {{"rank", int64_t{3}}});
            }),
            "it: rank=3 has no effect here: rank counts only with kind=low or kind=lower");
}

TEST(Params, DefaultsAndChoicesAreAllPresent) {
  const Params params("x", specs(),
                      {{"rank", int64_t{8}}, {"rate", int64_t{1}}, {"note", std::string("hi")}});
  EXPECT_EQ(params.integer("rank"), 8);
  EXPECT_EQ(params.number("rate"), 1.0);
  EXPECT_TRUE(params.flag("shared"));
  EXPECT_EQ(params.text("kernel"), "tiled");
  EXPECT_EQ(params.str(), "kernel=tiled,note=hi,rank=8,rate=1,shared=true");
  EXPECT_EQ(Params().str(), "");
  EXPECT_THROW(params.integer("rnak"), Error);
}

TEST(Params, AnUnknownNameIsToldTheNearest) {
  const std::string text = fault_of([] { Params("linformer", specs(), {{"rnk", int64_t{8}}}); });
  EXPECT_TRUE(says(text, "linformer"));
  EXPECT_TRUE(says(text, "'rnk'"));
  EXPECT_TRUE(says(text, "nearest is 'rank'"));
  EXPECT_TRUE(says(fault_of([] { Params("x", {}, {{"a", true}}); }), "has none"));
}

TEST(Params, ValuesOutOfRangeOrOfAnotherTypeAreRefused) {
  const std::vector<std::map<std::string, ParamValue>> wrong = {{{"rank", int64_t{0}}},
                                                                {{"rank", int64_t{4097}}},
                                                                {{"rank", 8.0}},
                                                                {{"rate", 1.5}},
                                                                {{"rate", std::nan("")}},
                                                                {{"shared", int64_t{1}}},
                                                                {{"kernel", std::string("x")}}};
  for (const auto& given : wrong) EXPECT_THROW(Params("x", specs(), given), Error);
}

TEST(Params, TextReadsBack) {
  for (const ParamSpec& spec : specs())
    EXPECT_EQ(spec.parse("x", to_string(spec.value)), spec.value);
  EXPECT_EQ(specs()[1].parse("x", "1"), ParamValue(1.0));
  const double odd = 0.1 + 0.2;
  EXPECT_EQ(specs()[1].parse("x", to_string(odd)), ParamValue(odd));
  for (const char* text : {"", "8x", "8.5", "0", "-1", "99999999999999999999", " 8"})
    EXPECT_THROW(specs()[0].parse("x", text), Error) << text;
  for (const char* text : {"", "nan", "inf", "1.01", "0,5"})
    EXPECT_THROW(specs()[1].parse("x", text), Error) << text;
  EXPECT_THROW(specs()[2].parse("x", "1"), Error);
  const std::string error = fault_of([] { specs()[3].parse("full", "til"); });
  EXPECT_TRUE(says(error, "kernel=til"));
  EXPECT_TRUE(says(error, "tiled|materialized"));
}

TEST(Params, TypesAndRangesAsText) {
  const std::vector<ParamSpec> all = specs();
  EXPECT_EQ(all[0].type() + " " + all[0].range(), "int 1..4096");
  EXPECT_EQ(all[1].type() + " " + all[1].range(), "float 0..1");
  EXPECT_EQ(all[2].type() + " " + all[2].range(), "bool true|false");
  EXPECT_EQ(all[3].type() + " " + all[3].range(), "string tiled|materialized");
  EXPECT_EQ(all[4].range(), "any text");
}

TEST(Params, NearestByEditDistance) {
  EXPECT_EQ(nearest("perfromer", {"full", "performer", "linear"}), "performer");
  EXPECT_EQ(nearest("line", {"linformer", "linear"}), "linear");
  EXPECT_EQ(nearest("x", {}), "");
}

TEST(Params, AFarNameIsNotSuggested) {
  EXPECT_EQ(nearest_note("perfromer", {"full", "performer"}), "; nearest is 'performer'");
  EXPECT_EQ(nearest_note("mqra", {"mqar", "induction"}), "; nearest is 'mqar'");
  EXPECT_EQ(nearest_note("xyzzy", {"full", "gla", "hyena", "s4d"}), "");
  EXPECT_EQ(nearest_note("x", {}), "");
}

}  // namespace
}  // namespace attn::params_test
