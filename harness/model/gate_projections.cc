// One or two products and a bias for each gate; see gate_projections.h.
#include "harness/model/gate_projections.h"

#include "core/ops/ops.h"
#include "harness/model/weights.h"

namespace attn {

GateProjections::GateProjections(const Attention& attention, int64_t in, const std::string& role,
                                 uint64_t seed)
    : heads_(attention.config().heads) {
  for (const GateInput& gate : attention.gates()) {
    const std::string name = role + "gate." + gate.name;
    const int64_t out = heads_ * gate.width;
    Projection made;
    if (gate.rank > 0) made.down = glorot_weight(name + ".down", in, gate.rank, seed);
    made.up = glorot_weight(gate.rank > 0 ? name + ".up" : name, gate.rank > 0 ? gate.rank : in,
                            out, seed);
    if (!gate.bias.empty()) {
      made.bias = constant_weight(name + ".bias", {out}, 0);
      made.bias.value.set_value(Tensor::of({out}, gate.bias));
    }
    all_.push_back(std::move(made));
  }
}

GateVars GateProjections::of(const Var& x) const {
  GateVars gates;
  for (const Projection& each : all_) {
    const Var from = each.down.value.defined() ? linear(x, each.down.value, {}) : x;
    gates.push_back(each.bias.value.defined()
                        ? split_heads(linear(from, each.up.value, each.bias.value), heads_)
                        : linear_to_heads(from, each.up.value, heads_));
  }
  return gates;
}

std::vector<Weight> GateProjections::weights() const {
  std::vector<Weight> all;
  for (const Projection& each : all_)
    for (const Weight& weight : {each.down, each.up, each.bias})
      if (weight.value.defined()) all.push_back(weight);
  return all;
}

}  // namespace attn
