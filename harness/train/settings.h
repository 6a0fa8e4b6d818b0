// The model configuration for a task shape, a variant and training parameters.
#pragma once

#include <map>
#include <string>

#include "harness/model/encoder.h"
#include "tasks/api/task.h"

namespace attn {

// The value of setting `positions`.
Positions positions_of(const std::string& name);

ModelConfig model_config(const TaskShape& shape, const VariantInfo& variant,
                         const std::map<std::string, ParamValue>& variant_params,
                         const Params& training, uint64_t seed);

}  // namespace attn
