// AdamW with decoupled weight decay and clipping by the global norm, and the learning-rate
// schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "core/autograd/var.h"

namespace attn {

struct AdamWConfig {
  double beta1 = 0.9;
  double beta2 = 0.98;  // as Long Range Arena: the second moment averages about 50 steps
  double epsilon = 1e-9;
  double weight_decay = 0;  // per step and unit of learning rate, of tensors of rank 2 and more
  double clip = 0;          // largest global norm of the gradient; 0: no clipping
};

class AdamW {
 public:
  AdamW(std::vector<Var> parameters, AdamWConfig config);
  // One update from the gradients of the parameters; then sets the gradients to zero. Returns the
  // global norm of the gradient before clipping. If the norm is not finite, no parameter changes. A
  // parameter without a gradient does not change.
  double step(double learning_rate);

 private:
  double gradient_norm() const;

  AdamWConfig config_;
  int64_t steps_ = 0;
  std::vector<Var> parameters_;
  std::vector<Tensor> first_, second_;  // moments, shaped like the parameters
};

// The learning rate of a step in 0 .. steps - 1: linear warm-up to `peak` over the first `warmup`
// steps, then cosine decay to zero.
double learning_rate(int64_t step, int64_t steps, int64_t warmup, double peak);

}  // namespace attn
