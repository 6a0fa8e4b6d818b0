// A sweep departs from the protocol where a value is its own, and only there.
#include "harness/plan/departures.h"

#include <gtest/gtest.h>

#include <memory>

#include "harness/plan/profiles.h"
#include "harness/plan/shapes.h"

namespace attn::departures_test {
namespace {

using Names = std::vector<std::string>;

SweepRequest quick() {
  SweepRequest request;
  request.profile = "quick";
  return request;
}

TEST(Departures, NoProfileDepartsFromItself) {
  for (const ProfileInfo& info : all_profiles()) {
    SweepRequest request;
    request.profile = info.name;
    EXPECT_EQ(departures(request), Names()) << info.name;
  }
}

TEST(Departures, WhatIsMeasuredIsNone) {
  SweepRequest request = quick();
  request.variants = {"local", "linformer[rank=7]"};
  request.tasks = {"mqar", "parity"};
  request.axes["measure"] = "accuracy";
  request.jobs = 2;
  request.shards = 3;
  EXPECT_EQ(departures(request), Names());
}

TEST(Departures, APartOfTheValuesIsNone) {
  SweepRequest request = quick();
  request.axes["measure"] = "fidelity";
  request.axes["input"] = "needle";
  EXPECT_EQ(departures(request), Names());
  request.axes["input_scale"] = "1,3";
  EXPECT_EQ(departures(request), Names({"input_scale"}));
}

// Each length is of some sub-sweep, but not of all.
TEST(Departures, AValueOfAnotherSubSweepIsOne) {
  SweepRequest request = quick();
  request.axes["measure"] = "speed";
  request.axes["length"] = "4096";
  EXPECT_EQ(departures(request), Names({"length"}));
}

// What a profile says of heads, batches and layers; without a profile each row names its own.
TEST(Departures, ShapesBesideAProfileAreNamed) {
  SweepRequest request = quick();
  request.axes["measure"] = "memory";
  request.shapes = {find_shape("llama3-8b")};
  EXPECT_EQ(departures(request), Names({"shape"}));
  request.tokens = 32768;
  request.block = "paper";
  EXPECT_EQ(departures(request), Names({"shape", "tokens", "block"}));
  request.profile.clear();
  EXPECT_EQ(departures(request), Names());
}

TEST(Departures, FlagsBesideAProfileAreNamed) {
  SweepRequest request = quick();
  request.axes["repetitions"] = "4";
  request.axes["heads"] = "8";
  request.training = "steps=100,warmup=100";  // the second is the default
  EXPECT_EQ(departures(request), Names({"heads", "repetitions", "training.steps"}));
  request = quick();
  request.tune = "learning_rate=[2e-3,3e-3]";
  request.tune_by = "halving";
  EXPECT_EQ(departures(request), Names({"training.learning_rate", "tune_by"}));
}

TEST(Departures, WithoutAProfileShapesAreNone) {
  SweepRequest request;
  request.variants = {"full"};
  request.axes = {{"length", "77"}, {"threads", "2"}, {"mode", "train"}};
  EXPECT_EQ(departures(request), Names());
  request.axes["repetitions"] = "9";
  EXPECT_EQ(departures(request), Names());
  request.axes["repetitions"] = "3";
  EXPECT_EQ(departures(request), Names({"repetitions"}));
  request.axes = {{"seed", "0,1,2"}};
  request.tasks = {"mqar"};
  request.training = "steps=50";
  EXPECT_EQ(departures(request), Names({"training.steps"}));
}

TEST(Departures, LimitsAndPinsAreNamed) {
  SweepRequest request;
  request.profile = "standard";
  request.timeout_s = 3600;  // the profile's own
  EXPECT_EQ(departures(request), Names());
  request.timeout_s = 10;
  request.max_memory_bytes = 1 << 30;
  request.pin = "none";
  request.max_time_s = 60;
  EXPECT_EQ(departures(request), Names({"timeout", "max_memory", "max_time", "pin"}));
  request.precision = 0.02;
  EXPECT_EQ(departures(request), Names({"timeout", "max_memory", "precision", "pin"}));
}

// Under the name of a built-in profile too.
TEST(Departures, ASweepFileOfOnesOwnIsOne) {
  SweepRequest request;
  const std::string text = find_profile("smoke").text;
  request.sweep_file = std::make_shared<const Profile>(read_profile("smoke.toml", text));
  EXPECT_EQ(departures(request), Names());
  request.sweep_file = std::make_shared<const Profile>(read_profile("smoke.toml", text + "\n# x"));
  EXPECT_EQ(departures(request), Names({"sweep_file"}));
}

TEST(Departures, InputsOfAModelAreNoProfiles) {
  SweepRequest request = quick();
  request.axes = {{"measure", "fidelity"}, {"input", "trained"}};
  request.tasks = {"mqar"};
  EXPECT_EQ(departures(request), Names({"input"}));
}

}  // namespace
}  // namespace attn::departures_test
