// Steps of a decoder; see decoded_rows.h.
#include "harness/model/decoded_rows.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/ops/ops.h"
#include "core/ops/ops_heads.h"
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
  int64_t prompt = 0;
};
thread_local Asked asked;

// Positions [begin, end) of x [batch, heads, length, dim].
Tensor rows_between(const Tensor& x, int64_t begin, int64_t end) {
  return slice(Var(x), 2, begin, end).value();
}

std::vector<Tensor> rows_between(std::span<const Var> gates, int64_t begin, int64_t end) {
  std::vector<Tensor> parts;
  for (const Var& gate : gates) parts.push_back(rows_between(gate.value(), begin, end));
  return parts;
}

}  // namespace

AnsweredBySteps::AnsweredBySteps(std::optional<CacheType> cache, int64_t prompt) {
  asked = {true, cache, prompt};
}
AnsweredBySteps::~AnsweredBySteps() { asked = {}; }
std::optional<DecodedFrom> AnsweredBySteps::of(const Attention& attention) {
  const bool is_decoded = asked.by_steps && (asked.cache || as_forgetting(attention));
  if (!is_decoded) return std::nullopt;
  return DecodedFrom{asked.cache.value_or(CacheType::float32), asked.prompt};
}

std::optional<std::string> why_no_steps(const VariantInfo& variant, const Params& params,
                                        bool causal, bool behind_prompt) {
  const std::optional<Forgets> forgets = forgets_of(variant, params);
  if (!forgets) return std::nullopt;
  if (!causal) return "its decoder forgets, and no decoder answers attention that is not causal";
  if (forgets->at_prompt_alone && !behind_prompt)
    return "a score takes every position as a step, and this decoder forgets at the end of a "
           "prompt alone; --test-with 'prompt=N' scores behind one";
  return std::nullopt;
}

Tensor decoded_rows(const Attention& attention, CacheType cache, const Tensor& q, const Tensor& k,
                    const Tensor& v, std::span<const Var> gates, int64_t prompt) {
  const int64_t length = q.dim(2);
  ATTN_CHECK(prompt >= 0 && prompt < length, "a prompt of {} leaves no step of {} positions",
             prompt, length);
  const auto decoder = attention.decoder(q.dim(0), length, k.dim(1), Dtype::float32, cache);
  const Tensor steps(q.shape().with(2, length - prompt));
  if (prompt == 0) {
    answer(*decoder, q, k, v, steps, values_of(gates));
    return steps;
  }
  const NoGrad no_grad;
  const int64_t sharing = q.dim(1) / k.dim(1);
  const Var whole = attention.forward(Var(q), repeat_heads(Var(k), sharing),
                                      repeat_heads(Var(v), sharing), {.causal = true}, gates);
  decoder->extend(rows_between(k, 0, prompt), rows_between(v, 0, prompt),
                  rows_between(q, 0, prompt), rows_between(gates, 0, prompt));
  answer(*decoder, rows_between(q, prompt, length), rows_between(k, prompt, length),
         rows_between(v, prompt, length), steps, rows_between(gates, prompt, length));
  return concat(std::array{slice(whole, 2, 0, prompt), Var(steps)}, 2).value();
}

int64_t state_bytes_behind(int64_t prompt, const Attention& attention, int64_t length,
                           int64_t kv_heads) {
  const AttentionConfig& config = attention.config();
  const int64_t kept = kv_heads > 0 ? kv_heads : config.heads;
  const auto decoder = attention.decoder(1, length, kept);
  const Tensor q = Tensor::zeros({1, config.heads, prompt, config.head_dim}),
               k = Tensor::zeros({1, kept, prompt, config.head_dim}),
               query = Tensor::zeros(q.shape().with(2, 1)),
               key = Tensor::zeros(k.shape().with(2, 1)), out(query.shape());
  decoder->extend(k, k, q);
  decoder->step(query, key, key, out);
  return decoder->state_bytes();
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
