// Decoding of a state space: a head's state of constant size, and one step of it. A step costs what
// a position costs in a forward pass.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "variants/api/decoder.h"
#include "variants/api/gates.h"

namespace attn {

// One position of one head; `head` is of one sequence.
struct ScanStep {
  int64_t head = 0;
  const real* x = nullptr;  // [head_dim]
  std::array<const real*, kMostGates> gates = {};
  real* state = nullptr;
  real* work = nullptr;  // [head_dim]
  real* out = nullptr;   // [head_dim]; null where no output is computed
};

struct ScanRule {
  int64_t state_reals = 0;  // of a head
  int64_t flops = 0;        // of a step of one number of the state
  std::vector<int64_t> gate_widths = {};
  std::function<void(const ScanStep&)> step;
};

// Null for group > 1, since each query head of a group has a state of its own.
std::unique_ptr<Decoder> scan_decoder(const Shape& position, int64_t capacity, ScanRule rule);

}  // namespace attn
