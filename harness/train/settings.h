// From settings of training to the configuration of a model.
#pragma once

#include <string>

#include "harness/train/learner.h"

namespace attn {

// The value of setting `positions`.
Positions positions_of(const std::string& name);

ModelConfig model_config(const LearnerSpec& spec);

}  // namespace attn
