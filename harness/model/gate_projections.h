// The projections that a multi-head layer makes its attention's gates with; see
// variants/api/gates.h. Costs projection_weights() multiply-adds for each position and gate.
#pragma once

#include <string>
#include <vector>

#include "variants/api/attention.h"

namespace attn {

class GateProjections {
 public:
  GateProjections() = default;  // of an attention without gates
  // `role` is the prefix of the weights' names: "gate.NAME", in two steps "gate.NAME.down" and
  // "gate.NAME.up"; and "gate.NAME.bias".
  GateProjections(const Attention& attention, int64_t in, const std::string& role, uint64_t seed);

  // x [batch, len, in] -> each gate [batch, heads, len, width].
  GateVars of(const Var& x) const;
  std::vector<Weight> weights() const;

 private:
  struct Projection {
    Weight down;  // [in, rank]; undefined for one matrix
    Weight up;    // [in or rank, heads · width]
    Weight bias;  // [heads · width]; undefined without one
  };
  int64_t heads_ = 1;
  std::vector<Projection> all_;
};

}  // namespace attn
