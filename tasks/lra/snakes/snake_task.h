// What the tasks pathfinder and pathx share: scenes as sequences of pixels, and what their markers
// and grey levels give away. One scene an example.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tasks/api/task.h"
#include "tasks/lra/snakes/scene.h"

namespace attn::snakes {

// Parameters: side, contour, distractors, inputs, data, train_examples.
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
  std::unique_ptr<Source> files_;  // null: generated
};

// The parameters behind `side` that both tasks have.
std::vector<ParamSpec> snake_params(ParamSpec side);

}  // namespace attn::snakes
