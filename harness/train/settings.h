// From training parameters and a task's shape to a model.
#pragma once

#include <map>
#include <string>

#include "harness/model/encoder.h"
#include "tasks/api/task.h"

namespace attn {

ModelConfig model_config(const TaskShape& shape, const VariantInfo& variant,
                         const std::map<std::string, ParamValue>& variant_params,
                         const Params& training, uint64_t seed);

}  // namespace attn
