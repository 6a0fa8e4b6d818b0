// AdamW: Loshchilov and Hutter 2019, arXiv:1711.05101, algorithm 2, with the bias correction of
// Kingma and Ba, arXiv:1412.6980. One pass over the gradients for their norm and one for the
// update; memory of twice the parameters. Weight decay does not apply to vectors such as biases.
#include "harness/train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/simd/rows.h"

namespace attn {

AdamW::AdamW(std::vector<Var> parameters, AdamWConfig config)
    : config_(config), parameters_(std::move(parameters)) {
  const MemoryScope scope(Purpose::weights);
  for (const Var& parameter : parameters_) {
    first_.push_back(Tensor::zeros(parameter.shape()));
    second_.push_back(Tensor::zeros(parameter.shape()));
  }
}

double AdamW::gradient_norm() const {
  constexpr int64_t kBlock = 1 << 14;  // summed in `real`, and these in double
  double squares = 0;
  for (const Var& parameter : parameters_) {
    const Tensor& gradient = parameter.grad();
    if (!gradient.defined()) continue;
    for (int64_t i = 0; i < gradient.size(); i += kBlock) {
      const real* const g = gradient.data() + i;
      squares += static_cast<double>(row_dot(g, g, std::min(kBlock, gradient.size() - i)));
    }
  }
  return std::sqrt(squares);
}

double AdamW::step(double learning_rate) {
  const double norm = gradient_norm();
  if (!std::isfinite(norm)) return norm;
  ++steps_;
  const double clip = config_.clip > 0 && norm > config_.clip ? config_.clip / norm : 1;
  // α · (m / c1) / (sqrt(v) / c2 + ε) = step_size · m / (sqrt(v) + epsilon)
  const double c1 = 1 - std::pow(config_.beta1, static_cast<double>(steps_));
  const double c2 = std::sqrt(1 - std::pow(config_.beta2, static_cast<double>(steps_)));
  const real step_size = static_cast<real>(learning_rate * c2 / c1),
             epsilon = static_cast<real>(config_.epsilon * c2);
  const real beta1 = static_cast<real>(config_.beta1), beta2 = static_cast<real>(config_.beta2);
  const real grad_factor = static_cast<real>((1 - config_.beta1) * clip);
  const real grad_square_factor = static_cast<real>((1 - config_.beta2) * clip * clip);
  for (size_t p = 0; p < parameters_.size(); ++p) {
    if (!parameters_[p].grad().defined()) continue;
    const bool decayed = parameters_[p].shape().rank() >= 2;
    const real decay_factor =
        static_cast<real>(1 - (decayed ? learning_rate * config_.weight_decay : 0));
    real *const value = parameters_[p].value().data(), *const gradient =
                                                           parameters_[p].grad().data();
    real *const first = first_[p].data(), *const second = second_[p].data();
    over_range(parameters_[p].value().size(), 4, [&](int64_t begin, int64_t end) {
      adamw_row(end - begin,
                {beta1, beta2, grad_factor, grad_square_factor, step_size, epsilon, decay_factor},
                value + begin, gradient + begin, first + begin, second + begin);
    });
  }
  return norm;
}

double learning_rate(int64_t step, int64_t steps, int64_t warmup, double peak) {
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
  const double gone = static_cast<double>(step - warmup) /
                      static_cast<double>(std::max<int64_t>(1, steps - warmup));
  return peak * 0.5 * (1 + std::cos(std::numbers::pi * std::min(1.0, gone)));
}

}  // namespace attn
