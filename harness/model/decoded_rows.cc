// Steps of a decoder; see decoded_rows.h.
#include "harness/model/decoded_rows.h"

#include <algorithm>
#include <vector>

#include "variants/api/answer.h"
#include "variants/api/forgetting.h"

namespace attn {
namespace {

CacheType with_real_values(CacheType cache) {
  for (const auto& each : names_of(cache))
    if (keys_of(each.value) == keys_of(cache) && values_of(each.value) == CacheNumber::float32)
      return each.value;
  throw_error("no cache has these keys");
}

struct Asked {
  bool by_steps = false;
  std::optional<CacheType> cache = {};
};
thread_local Asked asked;

}  // namespace

AnsweredBySteps::AnsweredBySteps(std::optional<CacheType> cache) { asked = {true, cache}; }
AnsweredBySteps::~AnsweredBySteps() { asked = {}; }
std::optional<CacheType> AnsweredBySteps::cache_of(const Attention& attention) {
  if (!asked.by_steps || asked.cache) return asked.cache;
  return as_forgetting(attention) ? std::optional(CacheType::float32) : std::nullopt;
}

std::optional<std::string> why_no_steps(const VariantInfo& variant, const Params& params,
                                        bool causal) {
  const std::optional<Forgets> forgets = forgets_of(variant, params);
  if (!forgets) return std::nullopt;
  if (!causal) return "its decoder forgets, and no decoder answers attention that is not causal";
  if (forgets->at_prompt_alone)
    return "a score takes every position as a step, and this decoder forgets at the end of a "
           "prompt alone";
  return std::nullopt;
}

Tensor decoded_rows(const Attention& attention, CacheType cache, const Tensor& q, const Tensor& k,
                    const Tensor& v, std::span<const Var> gates) {
  const auto decoder = attention.decoder(q.dim(0), q.dim(2), k.dim(1), Dtype::float32, cache);
  const Tensor all(q.shape());
  answer(*decoder, q, k, v, all, values_of(gates));
  return all;
}

Tensor decoded_weights(const Attention& attention, CacheType cache, const Tensor& q,
                       const Tensor& k, std::span<const Var> gates) {
  const int64_t matrices = q.dim(0) * q.dim(1), length = q.dim(2), dim = q.dim(3);
  const Tensor weights({q.dim(0), q.dim(1), length, length});
  for (int64_t first = 0; first < length; first += dim) {
    const int64_t columns = std::min(dim, length - first);
    const Tensor v = Tensor::zeros(k.shape());
    for (int64_t m = 0; m < matrices; ++m)
      for (int64_t c = 0; c < columns; ++c) v[(m * length + first + c) * dim + c] = 1;
    const Tensor out = decoded_rows(attention, with_real_values(cache), q, k, v, gates);
    for (int64_t row = 0; row < matrices * length; ++row)
      std::copy_n(out.data() + row * dim, columns, weights.data() + row * length + first);
  }
  return weights;
}

}  // namespace attn
