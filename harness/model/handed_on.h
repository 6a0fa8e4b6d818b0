// What layers of a model hand on to later layers of the same variant in one pass; see
// variants/api/carrying.h.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "harness/model/residual_blocks.h"

namespace attn {

class HandedOn {
 public:
  // The latest from a layer of the variant with these parameters; undefined: no layer was before.
  Var& by(const LayerConfig& layer) { return latest_[{layer.variant->name, layer.variant_params}]; }

 private:
  std::map<std::pair<std::string, std::map<std::string, ParamValue>>, Var> latest_;
};

}  // namespace attn
