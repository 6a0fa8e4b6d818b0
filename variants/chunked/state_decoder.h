// The recurrent form of chunked_attention(): one step from the state of those before, and decoding.
// A step costs 4·m·d FLOPs, with the delta rule 6, with a removal 8.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/counters.h"
#include "variants/api/decoder.h"
#include "variants/api/gates.h"

namespace attn {

// One step of one head, with the equations of chunked_attention.h.
struct StateStep {
  int64_t key_dim = 0, dim = 0;
  const real* q = nullptr;                         // [key_dim]; null: no output is computed
  const real *k = nullptr, *v = nullptr;           // [key_dim], [dim]
  const real* decay = nullptr;                     // [key_dim]: e^log_decay; null: 1
  const real* beta = nullptr;                      // one number: the delta rule
  const real* bonus = nullptr;                     // [key_dim]
  const real *erase = nullptr, *remove = nullptr;  // [key_dim]: the removal
  real* out = nullptr;                             // [dim]
};
inline int64_t step_reals(int64_t key_dim, int64_t dim) { return key_dim + dim; }

// Updates `state` [key_dim, dim] and computes the output; `work` has step_reals() numbers.
void advance_state(const StateStep& step, real* state, real* work, Tally& done);

// The rows of one head at one position, which a variant may change before the step.
struct StateRows {
  // The position: steps and prefilled positions so far, those taken back included, since a state
  // holds them. The head, of one sequence.
  int64_t at = 0, head = 0;
  real* q = nullptr;  // [head_dim]; null where no output is computed
  real *k = nullptr, *v = nullptr;
  real* decay = nullptr;                     // [head_dim]: 1, unless changed
  real* beta = nullptr;                      // of the delta rule; null: none
  real *erase = nullptr, *remove = nullptr;  // [head_dim] of the removal; null: none
  // The numbers of each gate for this head and position.
  std::array<const real*, kMostGates> gates = {};
};

struct StateRule {
  bool delta = false, removal = false;
  double scale = 1;   // of outputs
  Tensor bonus = {};  // [heads, head_dim] of one sequence; undefined: none
  std::vector<int64_t> gate_widths = {};
  std::function<void(const StateRows&)> prepare;
};

// `position` is [batch, heads, group, head_dim] as in Decoder; null for group > 1, since each query
// head of a group may decay its state differently.
std::unique_ptr<Decoder> state_decoder(const Shape& position, int64_t capacity, StateRule rule);

}  // namespace attn
