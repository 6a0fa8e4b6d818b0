// The axis dtype in plans: cells of float32 are the cells of before, what is skipped and why,
// labels, conditions, wrong use, forecasts.
#include <gtest/gtest.h>

#include <set>

#include "harness/cell/codec.h"
#include "harness/plan/profiles.h"
#include "tests/harness/plan/planned.h"

namespace attn::dtype_axis_test {
namespace {

SweepRequest of_full(std::map<std::string, std::string> axes) {
  return request_with(std::move(axes), {"full"});
}

// The id is that of the version before the axis, of sources that no version has.
TEST(DtypeAxis, CellsOfFloat32KeepTheirIds) {
  const Plan without = plan(of_full({{"heads", "8"}, {"length", "128"}}));
  CellKey key = without.cells.at(0).key;
  key.source = {};
  EXPECT_EQ(id_of(key), "c7a39aff3c3c7c36");
  EXPECT_EQ(to_json(without.config).dump().find("dtype"), std::string::npos);
  const auto same = ids(of_full({{"heads", "8"}, {"length", "128"}, {"dtype", "float32"}}));
  EXPECT_EQ(same, std::set<std::string>{without.cells.at(0).id});
  key.axes.dtype = Dtype::bfloat16;
  EXPECT_NE(id_of(key), "c7a39aff3c3c7c36");
}

TEST(DtypeAxis, ALabelTellsBFloat16) {
  std::vector<std::string> labels;
  for (const Cell& cell : plan(of_full({{"dtype", "float32,bfloat16"}, {"length", "64"}})).cells) {
    labels.push_back(cell.label);
    EXPECT_EQ(cell.skip, "");
  }
  EXPECT_EQ(labels,
            (std::vector<std::string>{"speed full length=64", "speed full length=64 bfloat16"}));
}

TEST(DtypeAxis, WhatCannotRunIsSkippedWithTheReason) {
  const auto skip_of = [](const char* axis, const char* value) {
    const Plan found = plan(of_full({{"dtype", "bfloat16"}, {"length", "64"}, {axis, value}}));
    return found.cells.at(0).skip;
  };
  EXPECT_EQ(skip_of("mode", "train"),
            "bfloat16 has no backward pass; its modes are forward and decode");
  EXPECT_EQ(skip_of("scope", "layer"), "bfloat16 is measured at scope attention alone");
  EXPECT_EQ(skip_of("scope", "model"), "bfloat16 is measured at scope attention alone");
  EXPECT_EQ(skip_of("mode", "decode"), "");
}

TEST(DtypeAxis, WrongUseIsAnErrorThatNamesWhatIsSupported) {
  const std::string wide = error_of(of_full({{"dtype", "float64"}}));
  EXPECT_NE(wide.find("dtype=float64"), std::string::npos) << wide;
  EXPECT_NE(wide.find("float32"), std::string::npos) << wide;
  EXPECT_NE(wide.find("bfloat16"), std::string::npos) << wide;
  const std::string training = error_of(of_full({{"measure", "accuracy"}, {"dtype", "bfloat16"}}));
  EXPECT_NE(training.find("axis dtype=bfloat16 does not apply to measure accuracy; models are "
                          "trained in float32"),
            std::string::npos)
      << training;
}

TEST(DtypeAxis, ConditionsTakeACellWithoutItAsFloat32) {
  const auto cells = [](const std::string& rule) {
    SweepRequest request;
    request.sweep_file = std::make_shared<const Profile>(
        read_profile("mine.toml",
                     "[[sweep]]\nvariants = ['full']\n"
                     "axes = { dtype = ['float32', 'bfloat16'], length = [64, 128] }\n" +
                         rule));
    return plan(request).cells.size();
  };
  EXPECT_EQ(cells(""), 4u);
  EXPECT_EQ(cells("exclude = [{ dtype = 'float32' }]"), 2u);
  EXPECT_EQ(cells("include = [{ dtype = 'bfloat16', length = 64 }, { dtype = 'float32' }]"), 3u);
}

TEST(DtypeAxis, ForecastsLessMemory) {
  const auto bytes = [](const char* mode, const char* dtype) {
    return plan(of_full(
                    {{"measure", "memory"}, {"mode", mode}, {"length", "65536"}, {"dtype", dtype}}))
        .cells.at(0)
        .forecast_bytes;
  };
  EXPECT_LT(static_cast<double>(bytes("forward", "bfloat16")),
            0.7 * static_cast<double>(bytes("forward", "float32")));
  EXPECT_LT(static_cast<double>(bytes("decode", "bfloat16")),
            0.7 * static_cast<double>(bytes("decode", "float32")));
}

}  // namespace
}  // namespace attn::dtype_axis_test
