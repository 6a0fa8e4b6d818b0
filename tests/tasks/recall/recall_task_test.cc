// The labels, lengths and distances of recall tasks on examples small enough to check by hand.
#include "tasks/recall/recall_task.h"

#include <gtest/gtest.h>

#include <set>

#include "core/base/check.h"
#include "core/base/rng.h"

namespace attn::recall_task_test {
namespace {

const std::vector<ParamSpec> kSpecs = {{"length", 6, "longest sequence", 1, 100},
                                       {"min_length", 0, "shortest sequence", 0, 100},
                                       {"train_examples", 1, "unused", 1, 100}};

Params params(int64_t length, int64_t min_length) {
  return Params("toy", kSpecs, {{"length", length}, {"min_length", min_length}});
}

// Position 3 is asked for token 0, position 4 for token 3.
class Toy final : public recall::RecallTask {
 public:
  explicit Toy(const Params& p) : RecallTask(p, 10, 9) {}
  Example labelled() const {
    Example e{.tokens = {5, 6, 7, 8, 9}};
    clear_labels(e);
    set_label(e, 4, 3);
    set_label(e, 3, 0);
    return e;
  }

 private:
  Example do_example(Rng&) const override { return labelled(); }
  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>&) const override {
    return {};
  }
  std::string do_draw(const Example&) const override { return ""; }
};

TEST(RecallTask, AskedPositionsHaveALabelAndADistance) {
  const Toy task(params(6, 0));
  const Example e = task.labelled();
  EXPECT_EQ(e.target, (std::vector<int32_t>{-1, -1, -1, 5, 8, -1}));
  EXPECT_EQ(e.distances, (std::vector<int32_t>{-1, -1, -1, 3, 1, -1}));
  const recall::Gaps gaps = recall::gaps_of(e);
  EXPECT_EQ(gaps.labels, 2);
  EXPECT_EQ(gaps.mean, 2);
  EXPECT_EQ(gaps.least, 1);
  EXPECT_EQ(gaps.most, 3);
}

TEST(RecallTask, TheShapeIsCausalWithALabelPerPosition) {
  const TaskShape shape = Toy(params(6, 0)).shape();
  EXPECT_EQ(shape.length, 6);
  EXPECT_EQ(shape.vocab, 10);
  EXPECT_EQ(shape.classes, 9);
  EXPECT_TRUE(shape.per_token && shape.causal);
}

TEST(RecallTask, LengthsAreDrawnFromTheirRange) {
  const recall::LengthRange some(params(6, 4), "toy", 2), one(params(6, 0), "toy", 2);
  EXPECT_EQ(some.least(), 4);
  EXPECT_EQ(one.least(), 6);
  Rng random(3), untouched(3);
  EXPECT_EQ(one.draw(random), 6);
  EXPECT_EQ(random.bits(), untouched.bits());
  std::set<int64_t> drawn;
  for (int i = 0; i < 100; i++) drawn.insert(some.draw(random));
  EXPECT_EQ(drawn, (std::set<int64_t>{4, 5, 6}));
  for (const int64_t wrong : {1, 7})
    EXPECT_THROW(recall::LengthRange(params(6, wrong), "toy", 2), Error);
}

}  // namespace
}  // namespace attn::recall_task_test
