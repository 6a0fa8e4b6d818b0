// Parameters of the task to score learned weights on, in plans: what they stand for, which cells
// they make, and what is wrong with them.
#include <gtest/gtest.h>

#include "harness/cell/codec.h"
#include "harness/plan/profiles.h"
#include "tests/harness/plan/planned.h"

namespace attn::test_on_test {
namespace {

SweepRequest tested(const std::string& text, const std::string& task = "induction[length=16]") {
  SweepRequest request = request_with({{"measure", "accuracy"}}, {"full"});
  request.tasks = {task};
  request.training = "positions=none";
  request.test_on = text;
  return request;
}

std::vector<std::string> texts(const SweepRequest& request) {
  std::vector<std::string> found;
  const Cell cell = plan(request).cells.at(0);
  for (const Params& params : cell.key.test_on) found.push_back(params.str());
  return found;
}

TEST(TestOn, GridsStandOnTheParametersOfTheTask) {
  const std::string rest = ",min_length=0,symbols=18,train_examples=100000";
  EXPECT_EQ(texts(tested("length=[32,64];length=8,min_length=4")),
            (std::vector<std::string>{"length=32" + rest, "length=64" + rest,
                                      "length=8,min_length=4,symbols=18,train_examples=100000"}));
}

TEST(TestOn, ACellWithoutThemKeepsItsId) {
  const Cell plain = plan(tested("")).cells.at(0), on = plan(tested("length=64")).cells.at(0);
  EXPECT_EQ(to_json(plain.key).dump().find("test_on"), std::string::npos);
  EXPECT_EQ(to_json(plan(tested("")).config).dump().find("test_on"), std::string::npos);
  EXPECT_NE(plain.id, on.id);
  CellKey key = on.key;
  key.test_on.clear();
  EXPECT_EQ(id_of(key), plain.id);
}

// Longer tests take longer; where positions end there are none, and nothing to wait for.
TEST(TestOn, ForecastsKnowTheLengths) {
  const auto seconds = [](const std::string& text, const std::string& positions) {
    SweepRequest request = tested(text);
    request.training = "positions=" + positions;
    return plan(request).cells.at(0).forecast_s;
  };
  EXPECT_GT(seconds("length=64", "none"), seconds("length=16", "none"));
  EXPECT_GT(seconds("length=16", "none"), seconds("", "none"));
  EXPECT_EQ(seconds("length=64", "learned"), seconds("", "learned"));
  EXPECT_GT(seconds("length=8", "learned"), seconds("", "learned"));
}

TEST(TestOn, ASweepFileNamesThemAndFlagsWin) {
  SweepRequest request;
  request.sweep_file = std::make_shared<const Profile>(read_profile("mine.toml", R"(
[defaults.accuracy]
test_on = "length=8"

[[sweep]]
variants = ["full"]
tasks = ["induction[length=16]"]
test_on = ["length=32", "length=64"]
)"));
  EXPECT_EQ(texts(request).size(), 2U);
  request.test_on = "length=24";
  EXPECT_EQ(texts(request),
            std::vector<std::string>{"length=24,min_length=0,symbols=18,train_examples=100000"});
}

TEST(TestOn, WhatIsWrongIsNamed) {
  const auto says = [](const SweepRequest& request, const std::string& what) {
    const std::string found = error_of(request);
    EXPECT_NE(found.find(what), std::string::npos) << found;
    EXPECT_EQ(found.find('\n'), std::string::npos);
  };
  says(tested("lenght=32"), "length");
  says(tested("length=0"), "length");
  says(tested("length=32", "image"), "length");
  says(tested("length=32;;length=64"), "test_on 'length=32;;length=64' has an empty part");
  SweepRequest timed = request_with({{"measure", "speed"}}, {"full"});
  timed.test_on = "length=32";
  says(timed, "test_on 'length=32' does not apply to measure speed");
}

}  // namespace
}  // namespace attn::test_on_test
