// See equal.h. Sizes are linear in the hidden units of the feed-forward, so that one look at a
// width tells how many units it needs.
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

AttentionShape shape_of(const LayerConfig& layer, int64_t batch) {
  return {.batch = batch,
          .heads = layer.heads,
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
Size parameters_of(LayerConfig layer) {
  layer.feed_forward = 1;
  const double unit = 2 * static_cast<double>(layer.width) + 1;
  return {learned_of(layer) - unit, unit};
}

double mixing_flops(const LayerConfig& layer, int64_t batch) {
  AttentionConfig config;
  config.heads = layer.heads;
  config.head_dim = layer.width / layer.heads;
  config.max_len = layer.max_len;
  config.causal = layer.causal;
  config.seed = layer.seed;
  config.layer = layer.layer;
  const std::unique_ptr<Attention> attention =
      layer.variant->build(std::move(config), layer.variant_params);
  const AttentionShape shape = shape_of(layer, batch);
  if (const std::optional<Cost> declared = attention->declared_cost(shape)) return declared->flops;
  return counted_cost(*attention, shape).flops;
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
  return {dense_flops(*layer.variant, params, dense) + mixing_flops(layer, batch),
          4 * static_cast<double>(batch * layer.max_len * layer.width)};
}

// Of all layers, which differ in a stack alone.
Size size_of(const LayersSpec& spec, Equal equal) {
  Size sum;
  const bool is_stack = spec.layer.variant->is_stack();
  const double times = is_stack ? 1 : static_cast<double>(spec.layers);
  for (int64_t i = 0; i < (is_stack ? spec.layers : 1); ++i) {
    const LayerConfig layer = layer_config_at(spec.layer, i);
    const Size one =
        equal == Equal::parameters ? parameters_of(layer) : flops_of(layer, spec.batch);
    sum.rest += times * one.rest;
    sum.unit += times * one.unit;
  }
  return sum;
}

LayersSpec with_head_dim(const LayersSpec& given, int64_t head_dim) {
  LayersSpec other = given;
  other.layer.width = given.layer.heads * head_dim;
  return other;
}

bool can_run(const LayersSpec& spec) {
  for (int64_t i = 0; i < spec.layers; ++i) {
    const LayerConfig layer = layer_config_at(spec.layer, i);
    const Params params(layer.variant->name, layer.variant->params, layer.variant_params);
    if (layer.variant->why_not(shape_of(layer, spec.batch), params)) return false;
  }
  return true;
}

class Search {
 public:
  Search(const LayersSpec& given, Equal equal, const VariantInfo& to)
      : given_(given), equal_(equal), asked_(static_cast<double>(given.layer.feed_forward)) {
    LayersSpec exact = given;
    exact.layer.variant = &to;
    exact.layer.variant_params = {};
    target_ = size_of(exact, equal).with(asked_);
  }

  // The layers with the units that make them equal, at the given head_dim or the nearest that has
  // them, in steps of `step`; nullopt: none has.
  std::optional<LayerConfig> found(int64_t step) {
    const int64_t start = given_.layer.width / given_.layer.heads;
    if (auto same = equal_at(start)) return same;
    const int64_t way = least_units_ ? -step : step;  // too few units are left: it is too wide
    for (int64_t dim = start + way; dim >= step && dim <= 4 * start; dim += way)
      if (can_run(with_head_dim(given_, dim)))
        if (auto other = equal_at(dim)) return other;
    return std::nullopt;
  }

 private:
  std::optional<LayerConfig> equal_at(int64_t head_dim) {
    LayerConfig layer = with_head_dim(given_, head_dim).layer;
    const double share =
        asked_ * static_cast<double>(layer.width) / static_cast<double>(given_.layer.width);
    const Size size = size_of(with_head_dim(given_, head_dim), equal_);
    const double units = std::round((target_ - size.rest) / size.unit);
    least_units_ = units < share;
    const bool is_near = std::fabs(size.with(units) / target_ - 1) <= kEqualWithin;
    if (!is_near || units < std::max(1.0, share / 2) || units > 2 * share) return std::nullopt;
    layer.feed_forward = static_cast<int64_t>(units);
    return layer;
  }

  const LayersSpec& given_;
  Equal equal_;
  double asked_, target_ = 0;
  bool least_units_ = false;  // of the last width: fewer units than its share
};

}  // namespace

LayerSizes sizes_of(const LayersSpec& spec) {
  const auto units = static_cast<double>(spec.layer.feed_forward);
  return {.width = spec.layer.width,
          .feed_forward = spec.layer.feed_forward,
          .parameters = std::llround(size_of(spec, Equal::parameters).with(units)),
          .flops = size_of(spec, Equal::flops).with(units)};
}

LayerConfig equalised(const LayersSpec& given, Equal equal, const VariantInfo& to) {
  if (equal == Equal::width) return given.layer;
  Search search(given, equal, to);
  const int64_t head_dim = given.layer.width / given.layer.heads;
  for (const int64_t step : {8, 4, 2, 1})
    if (head_dim % step == 0)
      if (const auto layer = search.found(step)) return *layer;
  throw_error(fmt::format(
      "equal={}: no width gives layers of {} with a feed-forward in proportion that are within 2 % "
      "of those of {} at width {} and feed_forward {}",
      equal == Equal::parameters ? "parameters" : "flops", given.layer.variant->name, to.name,
      given.layer.width, given.layer.feed_forward));
}

}  // namespace attn
