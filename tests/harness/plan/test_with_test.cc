// Parameters to score learned weights with, in plans: what they stand for, which cells they make,
// and what is wrong with them.
#include <gtest/gtest.h>

#include "harness/cell/codec.h"
#include "harness/plan/profiles.h"
#include "tests/harness/plan/planned.h"

namespace attn::test_with_test {
namespace {

SweepRequest tested(const std::string& text, const std::string& variant = "reformer[chunk=16]") {
  SweepRequest request = request_with({{"measure", "accuracy"}}, {variant});
  request.tasks = {"copy[length=16]"};
  request.test_with = text;
  return request;
}

std::vector<std::string> texts(const SweepRequest& request) {
  std::vector<std::string> found;
  const Cell cell = plan(request).cells.at(0);
  for (const Params& params : cell.key.test_with) found.push_back(params.str());
  return found;
}

TEST(TestWith, GridsStandOnTheParametersOfTheTraining) {
  const std::string rest = "as=paper,buckets=0,chunk=16,";
  EXPECT_EQ(texts(tested("rounds=[1,2];rounds=8,chunk=32")),
            (std::vector<std::string>{rest + "rounds=1", rest + "rounds=2",
                                      "as=paper,buckets=0,chunk=32,rounds=8"}));
}

// So does the row of a cell that is scored with nothing else.
TEST(TestWith, ACellWithoutThemKeepsItsId) {
  const Cell plain = plan(tested("")).cells.at(0), with = plan(tested("rounds=1")).cells.at(0);
  EXPECT_EQ(to_json(plain.key).dump().find("test_with"), std::string::npos);
  EXPECT_EQ(to_json(plan(tested("")).config).dump().find("test_with"), std::string::npos);
  EXPECT_NE(plain.id, with.id);
  EXPECT_GT(with.forecast_s, plain.forecast_s) << "its scores take time";
  CellKey key = with.key;
  key.test_with.clear();
  EXPECT_EQ(id_of(key), plain.id);
}

TEST(TestWith, ASweepFileNamesThemAndFlagsWin) {
  SweepRequest request;
  request.sweep_file = std::make_shared<const Profile>(read_profile("mine.toml", R"(
[[sweep]]
measure = "accuracy"
variants = ["reformer[chunk=16]"]
tasks = ["copy[length=16]"]
test_with = ["rounds=1", "rounds=8"]
)"));
  EXPECT_EQ(texts(request).size(), 2U);
  request.test_with = "rounds=2";
  EXPECT_EQ(texts(request), std::vector<std::string>{"as=paper,buckets=0,chunk=16,rounds=2"});
}

TEST(TestWith, WhatIsWrongIsNamed) {
  const auto says = [](const SweepRequest& request, const std::string& what) {
    const std::string found = error_of(request);
    EXPECT_NE(found.find(what), std::string::npos) << found;
    EXPECT_EQ(found.find('\n'), std::string::npos);
  };
  says(tested("round=1"), "rounds");
  says(tested("rounds=0"), "rounds");
  says(tested("rounds=1", "full"), "rounds");
  says(tested("rounds=1;;rounds=2"), "empty part");
  SweepRequest timed = request_with({{"measure", "speed"}}, {"reformer"});
  timed.test_with = "rounds=1";
  says(timed, "test_with 'rounds=1' does not apply to measure speed");
}

}  // namespace
}  // namespace attn::test_with_test
