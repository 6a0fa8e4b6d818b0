// Reach: how far an input moves an output of a stack of encoder layers with initial weights, by the
// gradient and by replacing the input. Costs 16 forward and backward and 17 forward passes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "harness/measure/reach_figures.h"
#include "harness/measure/workload.h"

namespace attn {

class LayerStack;

// A stack of `layers` encoder layers of the shape of `spec`, with a last layer norm, on one
// sequence of N(0, 1) vectors. Without positions: the input of a layer does not tell them.
class ReachProbe {
 public:
  ReachProbe(const WorkloadSpec& spec, int64_t layers);
  ~ReachProbe();
  const Tensor& input() const { return input_; }  // [1, length, width]
  Tensor output(const Tensor& input) const;       // [1, length, width]
  // d(direction · output row i)/d(input), [1, length, width]; direction [width].
  Tensor gradient(int64_t i, const Tensor& direction) const;

 private:
  std::unique_ptr<LayerStack> stack_;
  Tensor input_;
};

// Above rounding of an output in single precision (6e-8), and no more than the share of one key
// among a million.
inline constexpr double kReachFloor = 1e-6;
inline constexpr int64_t kReachPositions = 16;

// 0, 1, 2, 3, 4, 6, 8, 12, … and the last one, length - 1; before the output and after it.
std::vector<int64_t> reach_distances(int64_t length);
// The positions that are probed: the first, the last, and one at random in each of equal parts of
// those between, so that no period of a pattern is hit alone. All of them if they are few.
std::vector<int64_t> reach_positions(int64_t length, uint64_t seed);

// Uses the variant, length, heads, head_dim, causal, threads and seed of `spec`.
ReachFigures measure_reach(const WorkloadSpec& spec, int64_t layers);

}  // namespace attn
