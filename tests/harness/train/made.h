// A task of any shape whose examples a test writes by hand, by split and index.
#pragma once

#include <utility>

#include "tests/tasks/stored.h"

namespace attn::toy {

class Made final : public Task {
 public:
  Made(TaskShape shape, Stored::Make make, int64_t train_examples = 16)
      : Task(Params("made", {{"train_examples", train_examples, "as many as are trained on"}}, {})),
        shape_(shape),
        source_(std::move(make)) {}

 private:
  Example do_example(Rng&) const override { return {}; }
  const Source* do_source() const override { return &source_; }
  TaskShape do_shape() const override { return shape_; }
  double do_chance() const override { return 0.5; }
  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>&) const override {
    return {};
  }
  std::string do_draw(const Example&) const override { return ""; }

  TaskShape shape_;
  Stored source_;
};

}  // namespace attn::toy
