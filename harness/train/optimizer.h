// AdamW with decoupled weight decay and global-norm clipping, and the learning-rate schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "core/autograd/var.h"

namespace attn {

struct AdamWConfig {
  double beta1 = 0.9;
  double beta2 = 0.98;  // as Long Range Arena: a second moment that follows within 50 steps
  double epsilon = 1e-9;
  double weight_decay = 0;  // per step and unit of learning rate, on tensors of rank 2 and more
  double clip = 0;          // largest norm of the whole gradient; 0: no clipping
};

class AdamW {
 public:
  AdamW(std::vector<Var> parameters, AdamWConfig config);
  // One update from the parameters' gradients, which it sets to zero. Returns the gradient's norm
  // before clipping; when that is not finite, nothing is changed. A parameter that no gradient
  // reached is left alone.
  double step(double learning_rate);

 private:
  double gradient_norm() const;

  AdamWConfig config_;
  int64_t steps_ = 0;
  std::vector<Var> parameters_;
  std::vector<Tensor> first_, second_;  // moments, shaped like the parameters
};

// Of step 0 .. steps-1: rises linearly to `peak` over the first `warmup` steps, then falls to zero
// along half a cosine.
double learning_rate(int64_t step, int64_t steps, int64_t warmup, double peak);

}  // namespace attn
