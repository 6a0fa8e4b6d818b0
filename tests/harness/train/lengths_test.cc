// Length generalisation: which multiples are scored, on what, and what is said of the others.
#include "harness/train/lengths.h"

#include <gtest/gtest.h>

#include "tests/harness/train/toy.h"
#include "tests/said.h"

namespace attn::lengths_test {
namespace {

using Given = std::map<std::string, ParamValue>;

// Is the first token the same as the last one? Any length; `classes` may follow it.
class Ends final : public Task {
 public:
  explicit Ends(const Params& params) : Task(params) {}

 private:
  Example do_example(Rng& random) const override {
    Example e;
    const int64_t least = params().integer("min_length"), most = params().integer("length");
    const int64_t size = params().flag("bounded") ? 5 : random.between(least, most);
    e.tokens.resize(static_cast<size_t>(size));
    for (int32_t& token : e.tokens) token = static_cast<int32_t>(random.between(1, 6));
    e.target = {e.tokens.front() == e.tokens.back()};
    return e;
  }
  TaskShape do_shape() const override {
    const int64_t length = params().integer("length");
    return {.length = length, .vocab = 7, .classes = params().flag("growing") ? length : 2};
  }
  double do_chance() const override { return 0.5; }
  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>&) const override {
    return {};
  }
  std::string do_draw(const Example&) const override { return ""; }
};

const TaskInfo& ends() {
  static const TaskInfo info = [] {
    TaskInfo made;
    made.name = "ends";
    made.params = {{"length", 6, "longest", 1, 40},
                   {"min_length", 4, "shortest"},
                   {"growing", false, "as many classes as positions"},
                   {"bounded", false, "always five"},
                   {"train_examples", 64, ""}};
    made.make = make_task<Ends>;
    return made;
  }();
  return info;
}

TrainRequest request(const Given& training = {}, const Given& task = {}) {
  Given settings = {{"layers", int64_t{1}},
                    {"width", int64_t{8}},
                    {"feed_forward", int64_t{8}},
                    {"steps", int64_t{3}},
                    {"batch", int64_t{4}},
                    {"validation_examples", int64_t{8}},
                    {"test_examples", int64_t{40}},
                    {"stretch", int64_t{8}},
                    {"positions", std::string("sinusoidal")}};
  for (const auto& [name, value] : training) settings[name] = value;
  return {.task = &ends(),
          .task_params = task,
          .variant = &toy::plain(),
          .variant_params = {},
          .training = Params("training", training_params(), settings),
          .seed = 1,
          .shortcuts = false};
}

std::vector<LengthScore> lengths(const TrainRequest& asked) { return train(asked).by_length; }

TEST(Lengths, AreScoredUpToTheLastMultiple) {
  const TrainResult result = train(request());
  ASSERT_EQ(result.by_length.size(), 4u);
  for (size_t i = 0; i < 3; ++i) {
    const LengthScore& at = result.by_length[i];
    EXPECT_EQ(at.factor, int64_t{1} << i);
    EXPECT_EQ(at.length, 6 * at.factor);
    ASSERT_TRUE(at.score) << at.reason;
    EXPECT_GT(at.score->standard_error, 0);
    EXPECT_EQ(at.chance, 0.5);
  }
  EXPECT_EQ(result.by_length[0].score->value, result.test);
  EXPECT_FALSE(result.by_length[3].score) << "the task ends at 40";
  EXPECT_TRUE(says(result.by_length[3].reason, "48"));
}

TEST(Lengths, AreThoseOfTheTaskSoStretched) {
  const TrainRequest asked = request();
  const auto task = ends().build();
  const std::vector<Stretch> longer = stretched(asked, *task);
  ASSERT_EQ(longer.size(), 3u);
  EXPECT_EQ(longer[0].task->params().integer("length"), 12);
  EXPECT_EQ(longer[0].task->params().integer("min_length"), 8);
  EXPECT_EQ(longer[1].task->shape().length, 24);
}

TEST(Lengths, TrainingDoesNotDependOnThem) {
  const TrainResult plain = train(request({{"stretch", int64_t{1}}})), longer = train(request());
  EXPECT_TRUE(plain.by_length.empty());
  EXPECT_EQ(plain.test, longer.test);
  EXPECT_EQ(plain.final_train_loss, longer.final_train_loss);
  EXPECT_EQ(plain.parameters, longer.parameters);
}

TrainRequest tested_on(std::vector<Given> tasks, const Given& training = {},
                       const Given& task = {}) {
  Given settings = training;
  settings["stretch"] = int64_t{1};
  TrainRequest asked = request(settings, task);
  asked.test_on = std::move(tasks);
  return asked;
}

Given of_length(int64_t length) { return {{"length", length}, {"min_length", length}}; }

// Its own length gives the test score itself; a multiple gives what `stretch` finds there, with the
// same `min_length`.
TEST(Lengths, OtherParametersOfTheTaskAreScoredByTheSameWeights) {
  const TrainResult found = train(tested_on({{{"length", int64_t{6}}, {"min_length", int64_t{4}}},
                                             {{"length", int64_t{12}}, {"min_length", int64_t{8}}},
                                             of_length(5)}));
  ASSERT_EQ(found.by_task.size(), 3u);
  for (const TaskScore& on : found.by_task) ASSERT_TRUE(on.score) << on.reason;
  EXPECT_EQ(found.by_task[0].score->value, found.test);
  EXPECT_EQ(found.by_task[1].length, 12);
  const TrainResult longer = train(request());
  EXPECT_EQ(found.by_task[1].score->each, longer.by_length[1].score->each);
  EXPECT_EQ(found.by_task[2].length, 5);
  EXPECT_EQ(found.by_task[2].chance, 0.5);
  EXPECT_NE(found.by_task[2].score->each, found.by_task[0].score->each);
  EXPECT_TRUE(found.by_length.empty());
}

TEST(Lengths, TrainingDoesNotDependOnWhatItIsTestedOn) {
  for (const char* positions : {"learned", "sinusoidal", "rotary", "none"}) {
    const Given training = {{"positions", std::string(positions)}};
    const TrainResult plain = train(tested_on({}, training)),
                      longer = train(tested_on({of_length(3), of_length(30)}, training));
    EXPECT_TRUE(plain.by_task.empty());
    EXPECT_EQ(plain.test, longer.test) << positions;
    EXPECT_EQ(plain.final_train_loss, longer.final_train_loss) << positions;
    EXPECT_EQ(plain.parameters, longer.parameters) << positions;
    EXPECT_TRUE(longer.by_task[0].score) << positions << ": " << longer.by_task[0].reason;
    EXPECT_EQ(longer.by_task[1].score.has_value(), std::string(positions) != "learned");
  }
}

TEST(Lengths, ATaskThatTheModelCannotAnswerHasAReason) {
  const auto reason = [](const TrainRequest& asked) {
    const TrainResult found = train(asked);
    EXPECT_FALSE(found.by_task.at(0).score);
    EXPECT_EQ(found.by_task.at(0).chance, 0);
    return found.by_task.at(0).reason;
  };
  EXPECT_EQ(reason(tested_on({of_length(7)}, {{"positions", std::string("learned")}})),
            "learned positions end at the training length");
  VariantInfo bound = toy::plain();
  bound.traits.fixed_length = true;
  TrainRequest fixed = tested_on({of_length(12)});
  fixed.variant = &bound;
  EXPECT_EQ(reason(fixed), "plain is built for one length");
  fixed.test_on = {of_length(5)};
  EXPECT_TRUE(train(fixed).by_task[0].score) << "shorter sequences fit";
  Given growing = of_length(12);
  growing["growing"] = true;
  EXPECT_EQ(reason(tested_on({growing})),
            "it has 7 tokens and 12 classes there, 7 and 2 in "
            "training");
  EXPECT_TRUE(says(reason(tested_on({of_length(48)})), "48"));
  TrainRequest read = tested_on({{}});
  const TaskInfo counting = toy::counting();
  read.task = &counting;
  EXPECT_EQ(reason(read), "its examples are read, not generated");
}

TEST(Lengths, OfWhatEndsAtTheTrainingLengthHaveAReason) {
  const auto reason = [](const TrainRequest& asked) {
    const std::vector<LengthScore> all = lengths(asked);
    EXPECT_TRUE(all[0].score);
    EXPECT_FALSE(all[1].score);
    return all[1].reason;
  };
  EXPECT_EQ(reason(request({{"positions", std::string("learned")}})),
            "learned positions end at the training length");
  TrainRequest fixed = request();
  VariantInfo bound = toy::plain();
  bound.traits.fixed_length = true;
  fixed.variant = &bound;
  EXPECT_EQ(reason(fixed), "plain is built for one length");
  EXPECT_EQ(reason(request({}, {{"growing", true}})),
            "it has 7 tokens and 12 classes there, 7 and 6 in training");
  EXPECT_EQ(reason(request({}, {{"bounded", true}})),
            "its sequences do not grow with the parameter length: mean 5 to 5");
  TrainRequest without = request();
  const TaskInfo counting = toy::counting();
  without.task = &counting;
  EXPECT_EQ(reason(without), "counting has no parameter length");
}

}  // namespace
}  // namespace attn::lengths_test
