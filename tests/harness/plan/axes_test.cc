// Axes of number types and key heads, and the settings of training.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/base/check.h"
#include "harness/cell/codec.h"
#include "harness/plan/profiles.h"
#include "harness/plan/sweep_file.h"
#include "harness/plan/training_settings.h"
#include "tests/harness/plan/planned.h"
#include "tests/harness/run/fake_cell.h"
#include "tests/said.h"

namespace attn::axes_test {
namespace {

// The axis dtype in plans: cells of float32 are the cells of before, what is skipped and why,
// labels, conditions, wrong use, forecasts.

SweepRequest of_full(std::map<std::string, std::string> axes) {
  return request_with(std::move(axes), {"full"});
}

// The id is that of the version before the axis, of sources that no version has.
TEST(DtypeAxis, CellsOfFloat32KeepTheirIds) {
  const Plan without = plan(of_full({{"heads", "8"}, {"length", "128"}}));
  CellKey key = without.cells.at(0).key;
  key.source = {};
  EXPECT_EQ(id_of(key), "c7a39aff3c3c7c36");
  EXPECT_FALSE(says(to_json(without.config).dump(), "dtype"));
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
  EXPECT_TRUE(says(wide, "dtype=float64"));
  EXPECT_TRUE(says(wide, "float32"));
  EXPECT_TRUE(says(wide, "bfloat16"));
  const std::string training = error_of(of_full({{"measure", "accuracy"}, {"dtype", "bfloat16"}}));
  EXPECT_TRUE(says(training,
                   "axis dtype=bfloat16 does not apply to measure accuracy; of training it "
                   "is a setting: --train dtype=bfloat16"));
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

// The axis kv_heads in plans: cells that share no keys are the cells of before, conditions, labels,
// forecasts, and what is checked before a sweep.

// The id is that of the version before the axis, of sources that no version has.
TEST(KvHeadsAxis, CellsThatShareNothingKeepTheirIds) {
  const Plan without = plan(of_full({{"heads", "8"}, {"length", "128"}}));
  CellKey key = without.cells.at(0).key;
  EXPECT_EQ(to_json(key.axes).dump(),
            R"({"length":128,"batch":1,"heads":8,"head_dim":64,"mode":"forward",)"
            R"("scope":"attention","causal":false,"threads":1,"seed":0,"repetitions":9})");
  key.source = {};
  EXPECT_EQ(id_of(key), "c7a39aff3c3c7c36");
  EXPECT_FALSE(says(to_json(without.config).dump(), "kv_heads"));
  for (const char* same : {"0", "8", "0,8"}) {
    const auto found = ids(of_full({{"heads", "8"}, {"length", "128"}, {"kv_heads", same}}));
    EXPECT_EQ(found, std::set<std::string>{without.cells.at(0).id}) << same;
  }
}

TEST(KvHeadsAxis, AreCrossedWithHeads) {
  const Plan result = plan(
      of_full({{"measure", "memory"}, {"heads", "4,8"}, {"kv_heads", "0,2,8"}, {"length", "64"}}));
  std::set<std::pair<int64_t, int64_t>> found;
  std::set<std::string> labels;
  for (const Cell& cell : result.cells) {
    labels.insert(cell.label);
    found.emplace(cell.key.axes.heads.value(), cell.key.axes.kv_heads.value_or(0));
    EXPECT_EQ(cell.skip, cell.key.axes.heads == 4 && cell.key.axes.kv_heads == 8
                             ? "heads 4 are not a multiple of kv_heads 8"
                             : "");
  }
  EXPECT_EQ(found, (std::set<std::pair<int64_t, int64_t>>{{4, 0}, {4, 2}, {4, 8}, {8, 0}, {8, 2}}));
  EXPECT_EQ(labels.size(), result.cells.size()) << "each label tells its cell from the others";
  EXPECT_TRUE(labels.count("memory full length=64 heads=8 kv_heads=2"));
}

// Even where every cell that has the axis has the same value.
TEST(KvHeadsAxis, ALabelTellsASharedCellFromOneThatIsNot) {
  std::vector<std::string> labels;
  for (const Cell& cell : plan(of_full({{"kv_heads", "0,1"}, {"length", "64"}})).cells)
    labels.push_back(cell.label);
  EXPECT_EQ(labels,
            (std::vector<std::string>{"speed full length=64", "speed full length=64 kv_heads=1"}));
}

TEST(KvHeadsAxis, OfAMixerAreSkippedWithTheReason) {
  for (const Cell& cell : plan(request_with({{"kv_heads", "0,1"}}, {"mean"})).cells)
    EXPECT_EQ(cell.skip, cell.key.axes.kv_heads
                             ? "mean has no keys that query heads could share (kv_heads)"
                             : "");
}

TEST(KvHeadsAxis, OfOtherMeasuresOrOutOfRangeAreAnError) {
  const std::string training = error_of(of_full({{"measure", "accuracy"}, {"kv_heads", "2"}}));
  EXPECT_TRUE(says(training, "--train kv_heads=2"));
  const std::string fidelity = error_of(of_full({{"measure", "fidelity"}, {"kv_heads", "2"}}));
  EXPECT_TRUE(says(fidelity, "axis kv_heads=2 does not apply to measure fidelity"));
  const std::string negative = error_of(of_full({{"kv_heads", "-1"}}));
  EXPECT_TRUE(says(negative, "kv_heads=-1"));
}

TEST(KvHeadsAxis, ConditionsCountAsManyAsHeadsWhereNoneAreShared) {
  const auto cells = [](const std::string& rule) {
    SweepRequest request;
    request.sweep_file = std::make_shared<const Profile>(
        read_profile("mine.toml",
                     "[[sweep]]\nvariants = ['full']\n"
                     "axes = { heads = 8, kv_heads = [0, 1, 4], length = [64, 128] }\n" +
                         rule));
    return plan(request).cells.size();
  };
  EXPECT_EQ(cells(""), 6u);
  EXPECT_EQ(cells("exclude = [{ kv_heads = '>4' }]"), 4u);
  EXPECT_EQ(cells("include = [{ kv_heads = 8, length = 64 }]"), 1u);
  EXPECT_EQ(cells("exclude = [{ kv_heads = '<=4' }]"), 2u);
}

TEST(KvHeadsAxis, ForecastsFollowTheState) {
  const auto bytes = [](const char* kv_heads) {
    return plan(of_full({{"measure", "memory"},
                         {"mode", "decode"},
                         {"length", "65536"},
                         {"heads", "8"},
                         {"kv_heads", kv_heads}}))
        .cells.at(0)
        .forecast_bytes;
  };
  const double state = 2.0 * 65536 * 8 * 64 * sizeof(float);
  EXPECT_NEAR(static_cast<double>(bytes("0") - bytes("1")), state * 7 / 8, 0.05 * state);
}

class KvHeadsGate : public FakeSweep {
 protected:
  // The shapes that the checks before a sweep are asked for.
  Json shapes(const char* mode, const char* kv_heads) {
    request_.axes = {{"measure", "memory"},
                     {"length", "64"},
                     {"heads", "8"},
                     {"mode", mode},
                     {"kv_heads", kv_heads}};
    request_.variants = {"full"};
    request_.force = true;
    sweep();
    return requests("check").back().at("shapes");
  }
};

TEST_F(KvHeadsGate, DecodingIsCheckedWithTheHeadsOfKeys) {
  const Json shared = shapes("decode", "0,2");
  ASSERT_EQ(shared.size(), 2u) << shared;
  EXPECT_FALSE(shared[0].contains("kv_heads"));
  EXPECT_EQ(shared[1]["kv_heads"], 2);
  EXPECT_EQ(shared[1]["heads"], 8);
  EXPECT_EQ(shapes("decode", "2").size(), 2u) << "the shape of all heads too";
  const Json forward = shapes("forward", "2");
  EXPECT_EQ(forward.size(), 1u) << "which repeats keys: " << forward;
}

// Short names of training settings, wherever settings are written; rows hold the full ones.

SweepRequest training(const std::string& settings) {
  SweepRequest request = request_with({{"measure", "accuracy"}}, {"full"});
  request.tasks = {"mqar[preset=small]"};
  request.training = settings;
  return request;
}

TEST(TrainingSettings, ShortNamesAreThoseOfTheFullOnes) {
  EXPECT_EQ(ids(training("lr=1e-3,wd=0.1,steps=5")),
            ids(training("learning_rate=1e-3,weight_decay=0.1,steps=5")));
  SweepRequest tuned = training("steps=5"), in_full = tuned;
  tuned.tune = "lr=[1e-3,3e-3]";
  in_full.tune = "learning_rate=[1e-3,3e-3]";
  EXPECT_EQ(ids(tuned), ids(in_full));
  EXPECT_EQ(plan(tuned).cells.at(0).tuned, std::vector<std::string>{"learning_rate"});
}

// The profile's own learning rate is replaced, not joined by another.
TEST(TrainingSettings, AShortNameReplacesTheProfilesSetting) {
  SweepRequest request = training("lr=0.25");
  request.profile = "quick";
  for (const Cell& cell : plan(request).cells)
    EXPECT_EQ(cell.key.training.value().number("learning_rate"), 0.25);
}

TEST(TrainingSettings, OfOneSettingTwoNamesAreRefused) {
  EXPECT_EQ(error_of(training("lr=1e-3,learning_rate=1e-3")),
            "training: lr is learning_rate, which is given too");
  SweepRequest both = training("lr=1e-3");
  both.tune = "learning_rate=[1e-3,2e-3]";
  EXPECT_EQ(error_of(both), "learning_rate stands in both --train and --tune; choose one");
}

TEST(TrainingSettings, ANameLikeNoneGetsNoSuggestion) {
  EXPECT_EQ(error_of(training("xyz=3")).find("training: unknown parameter 'xyz' (known: layers,"),
            0u);
}

TEST(TrainingSettings, OfASweepFileToo) {
  const auto read = [](const std::string& last) {
    const Profile profile = read_profile(
        "mine.toml", "defaults.accuracy.training = { learning_rate = 0.5 }\n[[sweep]]\n" + last);
    return profile.sweeps.at(0);
  };
  EXPECT_EQ(read("tasks = 'mqar'\ntraining = { lr = 0.25 }").training, "learning_rate=[0.25]");
  EXPECT_EQ(read("tasks = 'mqar'\ntraining = 'lr=0.25'").training, "learning_rate=[0.25]");
  EXPECT_EQ(read("tasks = 'mqar'\ntuning = 'lr=[0.25,0.5]'").tune, "learning_rate=[0.25,0.5]");
  const SubSweep excluded = read("tasks = 'mqar'\nexclude = [{ training = 'lr=0.25' }]");
  EXPECT_EQ(excluded.rules.exclude.at(0).training.at(0).name, "learning_rate");
}

}  // namespace
}  // namespace attn::axes_test
