// See equal.h. Sizes are linear in the hidden units of the feed-forward, so each width is looked at
// once.
#include "harness/measure/equal.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "core/base/check.h"
#include "core/base/memory.h"
#include "harness/measure/dense_flops.h"
#include "harness/model/layer.h"
#include "variants/api/counted_cost.h"

namespace attn {
namespace {

// What layers are without their hidden units, and what a unit adds.
struct Size {
  double rest = 0, unit = 0;
  double with(double units) const { return rest + unit * units; }
};

AttentionShape shape_of(const LayerConfig& layer) {
  return {.heads = layer.heads,
          .q_len = layer.max_len,
          .kv_len = layer.max_len,
          .head_dim = layer.width / layer.heads,
          .causal = layer.causal};
}

double learned_of(const LayerConfig& config) {
  const MemoryScope scope(Purpose::weights);
  const Layer layer(config);
  int64_t count = 0;
  for (const Weight& weight : layer.weights())
    if (weight.learned) count += weight.value.value().size();
  return static_cast<double>(count);
}

// Of a hidden unit: its weights from and to each channel, and its bias.
Size parameters_without_units(const LayersSpec& spec) {
  Size size;
  for (int64_t i = 0; i < spec.layers; ++i) {
    LayerConfig one = layer_config_at(spec.layer, i);
    one.feed_forward = 1;
    const double unit = 2 * static_cast<double>(one.width) + 1;
    size.rest += learned_of(one) - unit;
    size.unit += unit;
  }
  return size;
}

double mixing_flops(const LayerConfig& layer, int64_t index) {
  AttentionConfig config;
  config.heads = layer.heads;
  config.head_dim = layer.width / layer.heads;
  config.max_len = layer.max_len;
  config.causal = layer.causal;
  config.seed = layer.seed;
  config.layer = index;
  const std::unique_ptr<Attention> attention =
      layer.variant->build(std::move(config), layer.variant_params);
  const AttentionShape shape = shape_of(layer);
  if (const std::optional<Cost> declared = attention->declared_cost(shape)) return declared->flops;
  return counted_cost(*attention, shape).flops;
}

Size flops_without_units(const LayersSpec& spec) {
  Size size;
  for (int64_t i = 0; i < spec.layers; ++i) {
    const LayerConfig one = layer_config_at(spec.layer, i);
    const double kept =
        one.kv_heads > 0 ? static_cast<double>(one.kv_heads) / static_cast<double>(one.heads) : 1.0;
    const DenseLayer dense{.tokens = static_cast<double>(one.max_len),
                           .heads = one.heads,
                           .width = one.width,
                           .feed_forward = 0,
                           .kept = kept};
    const Params params(one.variant->name, one.variant->params, one.variant_params);
    size.rest += dense_flops(*one.variant, params, dense) + mixing_flops(one, i);
    size.unit += 4 * static_cast<double>(one.max_len * one.width);
  }
  return size;
}

Size size_of(const LayersSpec& spec, Equal equal) {
  return equal == Equal::parameters ? parameters_without_units(spec) : flops_without_units(spec);
}

LayersSpec with_head_dim(const LayersSpec& given, int64_t head_dim) {
  LayersSpec other = given;
  other.layer.width = given.layer.heads * head_dim;
  return other;
}

bool can_run(const LayersSpec& spec) {
  for (int64_t i = 0; i < spec.layers; ++i) {
    const LayerConfig one = layer_config_at(spec.layer, i);
    const Params params(one.variant->name, one.variant->params, one.variant_params);
    if (one.variant->why_not(shape_of(one), params)) return false;
  }
  return true;
}

int64_t step_of(int64_t head_dim) {
  for (const int64_t step : {8, 4, 2})
    if (head_dim % step == 0) return step;
  return 1;
}

// Widths beside the given one, one after the other in the direction of equality.
class Search {
 public:
  Search(const LayersSpec& given, Equal equal, double target)
      : given_(given),
        equal_(equal),
        target_(target),
        ratio_(static_cast<double>(given.layer.feed_forward) /
               static_cast<double>(given.layer.width)) {}

  // The head_dim whose layers, with a feed-forward in proportion, are nearest to the target.
  int64_t nearest_head_dim() {
    const int64_t start = given_.layer.width / given_.layer.heads, step = step_of(start);
    int64_t best = start;
    double least = distance(start);
    const int64_t way = sign_ > 0 ? -step : step;
    for (int64_t dim = start + way; dim >= step && dim <= 4 * start; dim += way) {
      if (!can_run(with_head_dim(given_, dim))) continue;
      const double off = distance(dim);
      if (off > least) break;
      best = dim, least = off;
    }
    return best;
  }

 private:
  double distance(int64_t head_dim) {
    const LayersSpec at = with_head_dim(given_, head_dim);
    const double size = size_of(at, equal_).with(ratio_ * static_cast<double>(at.layer.width)),
                 off = std::log(size / target_);
    sign_ = off > 0 ? 1 : -1;
    return std::fabs(off);
  }

  const LayersSpec& given_;
  Equal equal_;
  double target_, ratio_;
  int sign_ = 1;  // of the last distance: above or below the target
};

// The layers of `at` with the units that bring them to the target, at least one.
struct Fitted {
  int64_t units = 1;
  double off = 0;  // share of the target
};
Fitted fitted(const LayersSpec& at, Equal equal, double target) {
  const Size size = size_of(at, equal);
  const double units = std::max(1.0, std::round((target - size.rest) / size.unit));
  return {static_cast<int64_t>(units), std::fabs(size.with(units) / target - 1)};
}

}  // namespace

int64_t parameters_of(const LayersSpec& spec) {
  const double units = static_cast<double>(spec.layer.feed_forward);
  return std::llround(parameters_without_units(spec).with(units));
}

double forward_flops_of(const LayersSpec& spec) {
  return flops_without_units(spec).with(static_cast<double>(spec.layer.feed_forward));
}

LayerSizes sizes_of(const LayersSpec& spec) {
  return {.width = spec.layer.width,
          .feed_forward = spec.layer.feed_forward,
          .parameters = parameters_of(spec),
          .flops = forward_flops_of(spec)};
}

LayerConfig equalised(const LayersSpec& given, Equal equal, const VariantInfo& to) {
  if (equal == Equal::width) return given.layer;
  LayersSpec exact = given;
  exact.layer.variant = &to;
  exact.layer.variant_params = {};
  const double asked = static_cast<double>(given.layer.feed_forward),
               target = size_of(exact, equal).with(asked);
  LayersSpec chosen = given;
  Fitted fit = fitted(chosen, equal, target);
  const double units = static_cast<double>(fit.units);
  if (fit.off > kEqualWithin || units < asked / 2 || units > 2 * asked) {
    chosen = with_head_dim(given, Search(given, equal, target).nearest_head_dim());
    fit = fitted(chosen, equal, target);
  }
  ATTN_CHECK(
      fit.off <= kEqualWithin,
      "{}: no width makes its layers equal in {} to those of {} at width {} and feed_forward "
      "{}; the nearest, width {}, is {:.0f} % off",
      given.layer.variant->name, equal == Equal::parameters ? "parameters" : "FLOPs", to.name,
      given.layer.width, given.layer.feed_forward, chosen.layer.width, 100 * fit.off);
  chosen.layer.feed_forward = fit.units;
  return chosen.layer;
}

}  // namespace attn
