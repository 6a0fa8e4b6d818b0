// Formulas of what stands around the attention of a workload; see workload_cost.h.
#include "harness/measure/workload_cost.h"

#include "harness/measure/dense_flops.h"
#include "variants/api/stack.h"

namespace attn {

void add_repeats(const WorkloadSpec& spec, Cost& cost) {
  const auto tensors = static_cast<double>(reads_of(spec).keys ? 2 : 1);
  const auto numbers = static_cast<double>(spec.batch * spec.heads * spec.length * spec.head_dim);
  const double repeated = tensors * numbers * static_cast<double>(size_of(spec.dtype));
  cost.peak_bytes += repeated;
  cost.bytes += repeated + repeated / static_cast<double>(spec.group());
}

int64_t layers_of(const WorkloadSpec& spec) {
  return spec.scope == ScopeKind::model ? spec.layers : 1;
}

int64_t hidden_width(const WorkloadSpec& spec) {
  return spec.feed_forward > 0 ? spec.feed_forward
                               : kFeedForwardFactor * spec.heads * spec.head_dim;
}

double layers_dense_flops(const WorkloadSpec& spec) {
  const int64_t width = spec.heads * spec.head_dim;
  const DenseLayer dense{.tokens = static_cast<double>(spec.batch * spec.length),
                         .heads = spec.heads,
                         .width = width,
                         .feed_forward = hidden_width(spec),
                         .kept = 1 / static_cast<double>(spec.group())};
  double flops = 0;
  for (int64_t i = 0; i < layers_of(spec); ++i) {
    const auto [variant, params] = layer_variant(*spec.variant, spec.params, i);
    flops += dense_flops(*variant, Params(variant->name, variant->params, params), dense);
  }
  return flops;
}

double ends_flops(const WorkloadSpec& spec) {
  const double width = static_cast<double>(spec.heads * spec.head_dim);
  return 2 * static_cast<double>(spec.batch) * width *
         static_cast<double>(spec.length + kWorkloadClasses);
}

VariantInfo::Reads reads_of(const WorkloadSpec& spec) {
  return spec.variant->read_by(spec.chosen());
}

}  // namespace attn
