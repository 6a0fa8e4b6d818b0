// Two FLOPs for each weight and token; see dense_flops.h.
#include "harness/measure/dense_flops.h"

namespace attn {

double dense_flops(const VariantInfo& info, const Params& params, const DenseLayer& layer) {
  if (info.is_stack()) {
    double sum = 0;
    for (const auto& [variant, own] : info.layers)
      sum += dense_flops(*variant, Params(variant->name, variant->params, own), layer);
    return sum / static_cast<double>(info.layers.size());
  }
  const VariantInfo::Reads read = info.read_by(params);
  const double projections =
      info.traits.mixer ? 0 : 1 + read.queries + layer.kept * (1 + read.keys);
  const auto width = static_cast<double>(layer.width);
  double following = 2 * width * static_cast<double>(layer.feed_forward);
  if (info.feed_forward == FeedForward::none) following = 0;
  if (info.feed_forward == FeedForward::gated_squared) following += width * width;
  double gates = 0;
  for (const GateInput& gate : info.gates_of(layer.heads, layer.width / layer.heads, params))
    gates += static_cast<double>(projection_weights(gate, layer.width, layer.heads));
  return 2 * layer.tokens * (projections * width * width + following + gates);
}

}  // namespace attn
