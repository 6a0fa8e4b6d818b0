// What the public members of Task refuse: every broken example is caught before it leaves.
#include "tasks/api/task.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/check.h"
#include "tests/tasks/stored.h"
#include "tests/said.h"

namespace attn::task_test {
namespace {

const std::vector<ParamSpec> kSpecs = {{"train_examples", 5, "size"}};

class Fixed final : public Task {
 public:
  Fixed(Example example, TaskShape shape)
      : Task(Params("fixed", kSpecs)),
        shape_(shape),
        source_([held = std::move(example)](Split, int64_t) { return held; }) {}
  mutable size_t fitted = 0, scored = 0;
  std::vector<Shortcut> own;

 private:
  Example do_example(Rng&) const override { return {}; }
  const Source* do_source() const override { return &source_; }
  TaskShape do_shape() const override { return shape_; }
  double do_chance() const override { return 0.5; }
  std::vector<Shortcut> do_shortcuts(const std::vector<Example>& train,
                                     const std::vector<Example>& test) const override {
    fitted = train.size();
    scored = test.size();
    return own;
  }
  std::string do_draw(const Example&) const override { return "fixed"; }

  TaskShape shape_;
  Stored source_;
};

constexpr TaskShape kTokens = {.length = 4, .vocab = 8, .classes = 3};
constexpr TaskShape kPerToken = {.length = 4, .vocab = 8, .classes = 3, .per_token = true};

Example good() { return {.tokens = {1, 7, 2}, .target = {2}, .evidence = {0, 2}, .slices = {}}; }

std::string message(const Example& example, const TaskShape& shape = kTokens) {
  return fault_of([&] { Fixed(example, shape).example(1, Split::train, 0); });
}

template <class Change>
std::string changed(Change change) {
  Example e = good();
  change(e);
  return message(e);
}

TEST(Task, AcceptsAGoodExample) {
  EXPECT_EQ(message(good()), "");
  EXPECT_EQ(message({.tokens = {1, 2}, .target = {-1, 2, -1, -1}}, kPerToken), "");
  EXPECT_EQ(message({.values = {0.5f, -1.0f}, .target = {0}}), "");
}

TEST(Task, RefusesBrokenInputs) {
  EXPECT_TRUE(says(changed([](Example& e) { e.tokens.clear(); }), "exactly one"));
  EXPECT_TRUE(says(changed([](Example& e) { e.values = {1}; }), "exactly one"));
  EXPECT_TRUE(says(changed([](Example& e) { e.tokens.resize(5, 1); }), "length 5"));
  EXPECT_TRUE(says(changed([](Example& e) { e.tokens[1] = 8; }), "token 8"));
  EXPECT_TRUE(says(changed([](Example& e) { e.tokens[1] = 0; }), "token 0"));
  EXPECT_TRUE(says(message({.values = {NAN}, .target = {0}}), "not finite"));
}

TEST(Task, RefusesBrokenLabelsEvidenceAndSlices) {
  EXPECT_TRUE(says(changed([](Example& e) { e.target = {3}; }), "label 3"));
  EXPECT_TRUE(says(changed([](Example& e) { e.target = {-1}; }), "label -1"));
  EXPECT_TRUE(says(changed([](Example& e) { e.target = {1, 1}; }), "2 labels"));
  EXPECT_TRUE(says(message({.tokens = {1}, .target = {1}}, kPerToken), "1 labels, 4"));
  EXPECT_TRUE(says(message({.tokens = {1}, .target = {-1, -1, -1, -1}}, kPerToken), "without"));
  EXPECT_TRUE(says(changed([](Example& e) { e.evidence = {2, 1}; }), "1 after 2"));
  EXPECT_TRUE(says(changed([](Example& e) { e.evidence = {1, 1}; }), "1 after 1"));
  EXPECT_TRUE(says(changed([](Example& e) { e.evidence = {3}; }), "sequence of 3"));
  EXPECT_TRUE(says(changed([](Example& e) { e.slices["x"] = INFINITY; }), "'x'"));
  EXPECT_TRUE(says(changed([](Example& e) { e.label_slices["x"] = {1}; }), "1 labels, expected 0"));
  const auto sliced = [](const std::vector<int32_t>& values) {
    Example e = {.tokens = {1, 2}, .target = {-1, 2, -1, -1}};
    e.label_slices["x"] = values;
    return e;
  };
  EXPECT_EQ(message(sliced({-1, 0, -1, -1}), kPerToken), "");
  EXPECT_TRUE(says(message(sliced({-1, 0}), kPerToken), "'x' has 2 labels, expected 4"));
  EXPECT_TRUE(says(message(sliced({-1, -1, -1, -1}), kPerToken), "-1 at position 1, which has a"));
  EXPECT_TRUE(says(message(sliced({0, 0, -1, -1}), kPerToken), "0 at position 0, which has no"));
  Example twice = sliced({-1, 0, -1, -1});
  twice.slices["x"] = 1;
  EXPECT_TRUE(says(message(twice, kPerToken), "'x' is of the example and of its labels"));
}

TEST(Task, ShortcutsFitOnTheTrainingSetAtMostAndStartWithTheMajority) {
  Fixed task(good(), kTokens);
  task.own = {{"own", 0.25}};
  const std::vector<Shortcut> shortcuts = task.shortcuts(1, 100, 7);
  EXPECT_EQ(task.fitted, 5u);  // train_examples
  EXPECT_EQ(task.scored, 7u);
  ASSERT_GE(shortcuts.size(), 3u);
  EXPECT_EQ(shortcuts[0].name, "majority");
  EXPECT_EQ(shortcuts[0].score, 1);
  EXPECT_EQ(shortcuts[1].name, "first token");  // then the ladder
  EXPECT_EQ(shortcuts.back().name, "own");
  EXPECT_THROW(task.shortcuts(1, 0, 7), Error);
  EXPECT_THROW(task.shortcuts(1, 7, 0), Error);
  EXPECT_THROW(task.example(1, Split::train, -1), Error);
  task.own = {{"broken", NAN}};
  EXPECT_THROW(task.shortcuts(1, 5, 5), Error);
}

}  // namespace
}  // namespace attn::task_test
