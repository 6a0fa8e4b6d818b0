// Builds variants for their formulas, or counts; see costs.h. At most 128 MB of weights at a time.
#include "harness/plan/costs.h"

#include <algorithm>
#include <exception>
#include <optional>

#include <fmt/core.h>

#include "core/base/memory.h"
#include "variants/api/counted_cost.h"

namespace attn {
namespace {

constexpr int64_t kMostWeights = 64 << 20;  // bytes of weights built for a forecast
constexpr int64_t kMostKept = 64 << 20;     // bytes of variants that are kept

struct LimitedMemory {
  explicit LimitedMemory(int64_t bytes) { set_memory_limit(bytes); }
  ~LimitedMemory() { set_memory_limit(0); }
  LimitedMemory(const LimitedMemory&) = delete;
  LimitedMemory& operator=(const LimitedMemory&) = delete;
};

std::unique_ptr<Attention> build(const VariantInfo& info, const Params& params,
                                 const AttentionShape& shape, int64_t max_len) {
  AttentionConfig config;
  config.heads = shape.heads;
  config.head_dim = shape.head_dim;
  config.max_len = max_len;
  config.causal = shape.causal;
  return info.build(config, params.values());
}

// Names what build() gets.
std::string text_of_build(const VariantInfo& info, const Params& params,
                          const AttentionShape& shape, int64_t max_len) {
  return fmt::format("{} {} {} {} {} {}", info.name, shape.heads, shape.head_dim, max_len,
                     shape.causal, params.str());
}

}  // namespace

Cost Costs::of(const VariantInfo& info, const Params& params, const AttentionShape& shape,
               int64_t kv_heads) {
  if (info.is_stack()) return mean_of_layers(info, shape, kv_heads);
  const std::string text =
      fmt::format("{} {} {} {} {} {}", shape.batch, shape.q_len, kv_heads, name_of(shape.dtype),
                  name_of(shape.cache), text_of_build(info, params, shape, shape.kv_len));
  const auto [found, is_new] = known_.try_emplace(text);
  if (is_new) found->second = new_cost(info, params, shape, kv_heads);
  return found->second;
}

Cost Costs::mean_of_layers(const VariantInfo& stack, const AttentionShape& shape,
                           int64_t kv_heads) {
  const double share = 1 / static_cast<double>(stack.layers.size());
  Cost mean;
  for (const auto& [variant, params] : stack.layers) {
    const Cost one = of(*variant, Params(variant->name, variant->params, params), shape,
                        variant->traits.mixer ? 0 : kv_heads);
    mean.flops += share * one.flops;
    mean.state_bytes += share * one.state_bytes;
    mean.peak_bytes = std::max(mean.peak_bytes, one.peak_bytes);
  }
  return mean;
}

// A variant with weights for each position is built for a few positions if it declares its cost:
// the formulas do not depend on the number of positions that it was built for.
Cost Costs::new_cost(const VariantInfo& info, const Params& params, const AttentionShape& shape,
                     int64_t kv_heads) {
  // Weights beyond the limit are the cell's own business: planning must not fill the memory.
  const LimitedMemory limited(memory_use().live_total + kMostWeights);
  try {
    const int64_t few = std::min<int64_t>(shape.kv_len, 16);
    const Attention& attention =
        built_for(info, params, shape, info.traits.fixed_length ? few : shape.kv_len);
    std::optional<Cost> declared = attention.declared_cost(shape);
    if (!declared) return counted(info, params, shape, kv_heads);
    if (kv_heads > 0) declared->state_bytes = attention.state_bytes(shape, kv_heads);
    return *declared;
  } catch (const std::exception&) {
    return {};
  }
}

const Attention& Costs::built_for(const VariantInfo& info, const Params& params,
                                  const AttentionShape& shape, int64_t max_len) {
  const std::string text = text_of_build(info, params, shape, max_len);
  if (const auto found = built_.find(text); found != built_.end()) return *found->second;
  if (built_bytes_ > kMostKept) {
    built_.clear();
    built_bytes_ = 0;
  }
  const int64_t before = memory_use().live_total;
  auto attention = build(info, params, shape, max_len);
  built_bytes_ += memory_use().live_total - before;
  return *(built_[text] = std::move(attention));
}

// Of a variant that declares no cost, as counted at three short lengths and carried on by the
// parabola through them: right for what grows with n, with n² and with both.
Cost Costs::counted(const VariantInfo& info, const Params& params, const AttentionShape& shape,
                    int64_t kv_heads) {
  constexpr double kLengths[] = {64, 128, 256};
  const auto n = static_cast<double>(shape.kv_len);
  const auto count = [&](int64_t length) {
    const std::string text =
        fmt::format("{} {} {} {}", kv_heads, name_of(shape.dtype), name_of(shape.cache),
                    text_of_build(info, params, shape, length));
    if (const auto found = counted_.find(text); found != counted_.end()) return found->second;
    AttentionShape at = shape;
    at.batch = 1;
    at.q_len = at.kv_len = length;
    const CountedCost seen = counted_cost(*build(info, params, at, length), at);
    const Cost at_length{
        .flops = seen.flops,
        .peak_bytes = seen.peak_bytes,
        .state_bytes = held_state_bytes(info, params.values(), at, kv_heads).value_or(0)};
    return counted_[text] = at_length;
  };
  Cost cost;
  if (n <= kLengths[2]) {
    cost = count(shape.kv_len);
  } else {
    const double* const x = kLengths;
    const double share[] = {(n - x[1]) * (n - x[2]) / ((x[0] - x[1]) * (x[0] - x[2])),
                            (n - x[0]) * (n - x[2]) / ((x[1] - x[0]) * (x[1] - x[2])),
                            (n - x[0]) * (n - x[1]) / ((x[2] - x[0]) * (x[2] - x[1]))};
    for (size_t i = 0; i < 3; i++) {
      const Cost at = count(static_cast<int64_t>(x[i]));
      for (double Cost::*field : {&Cost::flops, &Cost::peak_bytes, &Cost::state_bytes})
        cost.*field += share[i] * at.*field;
    }
    for (double Cost::*field : {&Cost::flops, &Cost::peak_bytes, &Cost::state_bytes})
      cost.*field = std::max(0.0, cost.*field);
  }
  for (double Cost::*field : {&Cost::flops, &Cost::peak_bytes, &Cost::state_bytes})
    cost.*field *= static_cast<double>(shape.batch);
  cost.flops *= static_cast<double>(shape.q_len) / n;
  return cost;
}

}  // namespace attn
