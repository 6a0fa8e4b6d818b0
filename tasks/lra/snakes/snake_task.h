// The class of the tasks pathfinder and pathx: scenes as sequences of pixels, and shortcuts that
// use the markers and the grey levels. One scene per example.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tasks/api/task.h"
#include "tasks/lra/snakes/scene.h"

namespace attn::snakes {

// Needs the parameters of snake_params().
class SnakeTask final : public Task {
 public:
  explicit SnakeTask(const Params& params);

 private:
  Example do_example(Rng& random) const override;
  TaskShape do_shape() const override;
  std::vector<Shortcut> do_shortcuts(const std::vector<Example>& train,
                                     const std::vector<Example>& test) const override;
  std::string do_draw(const Example& example) const override;
  int64_t do_picture_width() const override { return scenes_.settings().side; }
  std::vector<uint8_t> do_picture(const Example& example) const override;
  const Source* do_source() const override { return files_.get(); }

  Scenes scenes_;
  bool tokens_;
  std::unique_ptr<Source> files_;  // null if the examples are generated
};

// `side`, then contour, distractors, inputs, data and train_examples.
std::vector<ParamSpec> snake_params(ParamSpec side);

}  // namespace attn::snakes
