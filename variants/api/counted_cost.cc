// Two forwards, of which the second is counted; see counted_cost.h.
#include "variants/api/counted_cost.h"

#include "core/base/counters.h"
#include "core/base/memory.h"
#include "variants/api/carrying.h"

namespace attn {

CountedCost counted_cost(const Attention& attention, const AttentionShape& shape) {
  const NoGrad no_grad;
  const auto inputs = [](const Shape& of, uint64_t index) {
    return Var(Tensor::normal(of, rng(51, "counted cost", index)));
  };
  const Mask mask{shape.causal, {}};
  const Mixer* const mixer = as_mixer(attention);
  Var q, k, v;
  if (mixer) {
    v = inputs({shape.batch, shape.kv_len, shape.heads * shape.head_dim}, 2);
  } else {
    const Shape query{shape.batch, shape.heads, shape.q_len, shape.head_dim};
    q = inputs(query, 0);
    k = inputs(query.with(2, shape.kv_len), 1);
    v = inputs(k.shape(), 2);
  }
  const CarryingMixer* const carrying = as_carrying(attention);
  Var received;
  if (attention.config().receives)
    received = inputs(carrying->handed_shape(shape.batch, shape.kv_len), 3);
  const std::vector<Var> gates =
      leaves_of(random_gates(attention.gates(), shape.batch, shape.heads, shape.kv_len, 51));
  BFloat16Tensor q16, k16, v16;
  if (shape.dtype == Dtype::bfloat16) {
    v16 = rounded(v.value());
    if (!mixer) q16 = rounded(q.value()), k16 = rounded(k.value());
    q = k = v = Var();
  }
  const auto run = [&] {
    if (shape.dtype == Dtype::bfloat16) {
      mixer ? mixer->mix(v16, mask) : attention.forward(q16, k16, v16, mask, gates);
    } else if (received.defined()) {
      carrying->pass(v, received, mask);
    } else {
      mixer ? mixer->mix(v, mask) : attention.forward(q, k, v, mask, gates);
    }
  };
  run();  // what is made on first use is no cost of a forward
  reset_memory_peak();
  const int64_t live = memory_use().live_total;
  const double flops = counters().flops;
  run();
  return {counters().flops - flops, static_cast<double>(memory_use().peak_total - live)};
}

std::optional<double> held_state_bytes(const VariantInfo& info,
                                       const std::map<std::string, ParamValue>& given,
                                       const AttentionShape& shape, int64_t kv_heads) {
  AttentionShape decoded = shape;
  decoded.q_len = shape.kv_len;
  decoded.causal = true;
  if (info.why_no_decoder(decoded, Params(info.name, info.params, given))) return std::nullopt;
  const auto attention = info.build({.heads = shape.heads,
                                     .head_dim = shape.head_dim,
                                     .max_len = shape.kv_len,
                                     .causal = true,
                                     .params = {}},
                                    given);
  return static_cast<double>(
      attention->decoder(shape.batch, shape.kv_len, kv_heads, shape.dtype, shape.cache)
          ->state_bytes());
}

}  // namespace attn
