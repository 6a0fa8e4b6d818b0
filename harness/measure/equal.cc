// See equal.h. Sizes are linear in the hidden units of the feed-forward, so that one look at a
// width tells how many units it needs.
#include "harness/measure/equal.h"

#include <algorithm>
#include <cmath>
#include <set>

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

AttentionShape shape_of(const LayerConfig& layer, int64_t batch) {
  return {.batch = batch,
          .heads = layer.heads,
          .q_len = layer.max_len,
          .kv_len = layer.max_len,
          .head_dim = layer.width / layer.heads,
          .causal = layer.causal};
}

// The learned numbers of a layer or of its feed-forward.
template <class Part>
double learned_of(const LayerConfig& config) {
  const MemoryScope scope(Purpose::weights);
  const Part part(config);
  int64_t count = 0;
  for (const Weight& weight : part.weights())
    if (weight.learned) count += weight.value.value().size();
  return static_cast<double>(count);
}

Size parameters_of(LayerConfig layer) {
  LayerConfig two = layer;
  layer.feed_forward = 1, two.feed_forward = 2;
  const double unit = learned_of<FeedForwardBlock>(two) - learned_of<FeedForwardBlock>(layer);
  return {learned_of<Layer>(layer) - unit, unit};
}

double mixing_flops(const LayerConfig& layer, int64_t batch) {
  const AttentionBlock block(layer, "");
  const AttentionShape shape = shape_of(layer, batch);
  if (const auto declared = block.attention().declared_cost(shape)) return declared->flops;
  return counted_cost(block.attention(), shape).flops;
}

Size flops_of(const LayerConfig& layer, int64_t batch) {
  const double kept = layer.kv_heads > 0
                          ? static_cast<double>(layer.kv_heads) / static_cast<double>(layer.heads)
                          : 1.0;
  const DenseLayer dense{.tokens = static_cast<double>(batch * layer.max_len),
                         .heads = layer.heads,
                         .width = layer.width,
                         .feed_forward = 0,
                         .kept = kept};
  const Params params(layer.variant->name, layer.variant->params, layer.variant_params);
  DenseLayer one = dense;
  one.feed_forward = 1;
  const double rest = dense_flops(*layer.variant, params, dense);
  return {rest + mixing_flops(layer, batch), dense_flops(*layer.variant, params, one) - rest};
}

// Of all layers. They differ in a stack; and where layers hand something on, the first differs from
// all that receive.
Size size_of(const LayersSpec& spec, Equal equal) {
  Size sum;
  const bool is_stack = spec.layer.variant->is_stack();
  const int64_t kinds = is_stack                      ? spec.layers
                        : spec.layer.variant->carries ? std::min<int64_t>(2, spec.layers)
                                                      : 1;
  for (int64_t i = 0; i < kinds; ++i) {
    const bool is_rest = i + 1 == kinds && !is_stack;  // it stands for all layers from it on
    const double times = is_rest ? static_cast<double>(spec.layers - i) : 1;
    const LayerConfig layer = layer_config_at(spec.layer, i);
    const Size one =
        equal == Equal::parameters ? parameters_of(layer) : flops_of(layer, spec.batch);
    sum.rest += times * one.rest;
    sum.unit += times * one.unit;
  }
  return sum;
}

bool can_run(const LayersSpec& spec) {
  for (int64_t i = 0; i < spec.layers; ++i) {
    const LayerConfig layer = layer_config_at(spec.layer, i);
    const Params params(layer.variant->name, layer.variant->params, layer.variant_params);
    if (layer.variant->why_not(shape_of(layer, spec.batch), params)) return false;
  }
  return true;
}

struct Fitted {
  LayersSpec spec;        // with the units that come nearest to the target
  bool is_equal = false;  // within 2 %, with a feed-forward in proportion
  bool is_wide = false;   // fewer units than the width's share are left: it is too wide
};

Fitted fitted(const LayersSpec& given, int64_t head_dim, Equal equal, double target) {
  Fitted fit{given};
  LayerConfig& layer = fit.spec.layer;
  layer.width = given.layer.heads * head_dim;
  const double share = static_cast<double>(given.layer.feed_forward) *
                       static_cast<double>(layer.width) / static_cast<double>(given.layer.width);
  const Size size = size_of(fit.spec, equal);
  if (size.unit == 0) {  // no feed-forward: the width alone decides
    fit.is_wide = size.rest > target;
    fit.is_equal = std::fabs(size.rest / target - 1) <= kEqualWithin;
    return fit;
  }
  const double units = std::round((target - size.rest) / size.unit);
  fit.is_wide = units < share;
  fit.is_equal = std::fabs(size.with(units) / target - 1) <= kEqualWithin &&
                 units >= std::max(1.0, share / 2) && units <= 2 * share;
  if (fit.is_equal) layer.feed_forward = static_cast<int64_t>(units);
  return fit;
}

}  // namespace

LayerSizes sizes_of(const LayersSpec& spec) {
  const auto units = static_cast<double>(spec.layer.feed_forward);
  return {.width = spec.layer.width,
          .feed_forward = spec.layer.feed_forward,
          .parameters = std::llround(size_of(spec, Equal::parameters).with(units)),
          .flops = size_of(spec, Equal::flops).with(units)};
}

// At the given head_dim or the nearest that has equal layers, in steps of 8, then of fewer.
LayerConfig equalised(const LayersSpec& given, Equal equal, const VariantInfo& to) {
  if (equal == Equal::width) return given.layer;
  LayersSpec exact = given;
  exact.layer.variant = &to;
  exact.layer.variant_params = {};
  const double target = size_of(exact, equal).with(static_cast<double>(given.layer.feed_forward));
  const int64_t start = given.layer.width / given.layer.heads;
  const Fitted same = fitted(given, start, equal, target);
  if (same.is_equal) return same.spec.layer;
  std::set<int64_t> tried = {start};
  for (const int64_t step : {8, 4, 2, 1}) {
    if (start % step != 0) continue;
    const int64_t way = same.is_wide ? -step : step;
    for (int64_t dim = start + way; dim >= step && dim <= 4 * start; dim += way) {
      LayersSpec other = given;
      other.layer.width = given.layer.heads * dim;
      if (!tried.insert(dim).second || !can_run(other)) continue;
      const Fitted fit = fitted(given, dim, equal, target);
      if (fit.is_equal) return fit.spec.layer;
    }
  }
  throw_error(fmt::format(
      "equal={}: no width gives layers of {} with a feed-forward in proportion that are within 2 % "
      "of those of {} at width {} and feed_forward {}",
      equal == Equal::parameters ? "parameters" : "flops", given.layer.variant->name, to.name,
      given.layer.width, given.layer.feed_forward));
}

}  // namespace attn
