// Parameters of eviction, and the draws of its method random; see eviction.h.
#include "variants/softmax/eviction.h"

#include <cmath>
#include <fmt/core.h>

#include "core/base/check.h"
#include "core/base/rng.h"

namespace attn {

std::vector<ParamSpec> eviction_params() {
  std::vector<std::string> methods;
  for (const auto& each : names_of(Evict{})) methods.emplace_back(each.name);
  ParamSpec budget("budget", 64.0,
                   "positions that the cache keeps for each head of keys; below 1: that share of "
                   "the positions so far",
                   0.001, 1e9);
  ParamSpec when("when", {"always", "prompt"},
                 "always: a step over the budget forgets; prompt: the end of a prompt alone");
  for (const std::string& method : methods) {
    if (method == "none") continue;
    budget = budget.when("evict", method);
    if (method != "snapkv" && method != "quest") when = when.when("evict", method);
  }
  return {ParamSpec("evict", std::move(methods),
                    "what the decoder's cache keeps; snapkv forgets at the end of a prompt alone, "
                    "quest keeps all and reads a part")
              .later(),
          budget.later(), when.later()};
}

Eviction eviction_of(const Params& params, uint64_t seed) {
  const Evict method = *value_named<Evict>(params.text("evict"));
  return {.method = method,
          .budget = params.number("budget"),
          .at_prompt_alone = method == Evict::snapkv || params.text("when") == "prompt",
          .seed = seed};
}

std::optional<std::string> why_no_eviction(const AttentionShape& shape, const Params& params) {
  if (params.text("evict") == "none") return std::nullopt;
  const double budget = params.number("budget");
  if (budget > 1 && budget != std::floor(budget))
    return fmt::format("budget {} is neither a whole number of positions nor a share below 1",
                       budget);
  if (shape.cache != CacheType::float32)
    return fmt::format("a decoder that forgets caches in float32, not in {}", name_of(shape.cache));
  return std::nullopt;
}

double eviction_draw(uint64_t seed, int64_t head, int64_t position) {
  const uint64_t of_head = rng(seed, "eviction", static_cast<uint64_t>(head)).bits();
  return Rng(of_head + static_cast<uint64_t>(position)).uniform();
}

}  // namespace attn
