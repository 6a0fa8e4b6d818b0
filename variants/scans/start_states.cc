// See start_states.h.
#include "variants/scans/start_states.h"

#include <cmath>

namespace attn {

Shape poles_shape(const AttentionConfig& config) {
  return {config.heads, config.params.integer("states") / 2, config.head_dim};
}

Tensor start_steps(const AttentionConfig& config) {
  Rng stream = rng(config.seed, "log_dt");
  const Tensor steps({config.heads, config.head_dim});
  for (real& step : steps.values())
    step = static_cast<real>(stream.uniform(std::log(1e-3), std::log(0.1)));
  return steps;
}

Tensor start_poles(const AttentionConfig& config, double first, double apart) {
  const Tensor poles(poles_shape(config));
  for (int64_t i = 0; i < poles.size(); ++i)
    poles[i] =
        static_cast<real>(first + static_cast<double>(i / config.head_dim % poles.dim(1)) * apart);
  return poles;
}

std::optional<std::string> why_odd_states(const AttentionShape&, const Params& params) {
  if (params.integer("states") % 2 == 0) return std::nullopt;
  return "an odd number of states has one without its conjugate";
}

}  // namespace attn
