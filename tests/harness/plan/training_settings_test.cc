// Short names of training settings, wherever settings are written; rows hold the full ones.
#include "harness/plan/training_settings.h"

#include <gtest/gtest.h>

#include "harness/plan/sweep_file.h"
#include "tests/harness/plan/planned.h"

namespace attn::training_settings_test {
namespace {

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
}  // namespace attn::training_settings_test
