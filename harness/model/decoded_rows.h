// What a decoder with a cache of a type, or one that forgets, answers position by position, behind
// a prompt or without one: for fidelity, and for the scores of models whose decoder forgets.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "variants/api/variant_info.h"

namespace attn {

// q [batch, heads, length, head_dim], k, v [batch, kv_heads, length, head_dim], gates [batch,
// heads, length, width] -> as q: each position by a step after those before it. The first `prompt`
// positions, fewer than all, are appended at once instead, and their rows are those of the causal
// forward pass. O(length²) and a cache of the whole length.
Tensor decoded_rows(const Attention& attention, CacheType cache, const Tensor& q, const Tensor& k,
                    const Tensor& v, std::span<const Var> gates, int64_t prompt = 0);

// Bytes of the state of a decoder of one sequence of `length` positions, at the first step behind a
// prompt of so many: one that forgets at the end of a prompt has then made room for all steps.
int64_t state_bytes_behind(int64_t prompt, const Attention& attention, int64_t length,
                           int64_t kv_heads);

// The weights of these answers, as implied_weights(): keys are cached in the type of the keys of
// `cache`, and the values that show them in float32. Costs length / head_dim times as much.
Tensor decoded_weights(const Attention& attention, CacheType cache, const Tensor& q,
                       const Tensor& k, std::span<const Var> gates);

// From what the steps of a decoder are answered.
struct DecodedFrom {
  CacheType cache = CacheType::float32;
  int64_t prompt = 0;  // positions that are appended at once before the steps
};

// While one lives, passes of models without gradients answer as decoders do, every position behind
// the prompt by a step from a cache of this type. Without a type only decoders that forget do, from
// float32. Of the thread that made it.
class AnsweredBySteps {
 public:
  explicit AnsweredBySteps(std::optional<CacheType> cache = std::nullopt, int64_t prompt = 0);
  ~AnsweredBySteps();
  AnsweredBySteps(const AnsweredBySteps&) = delete;
  AnsweredBySteps& operator=(const AnsweredBySteps&) = delete;
  // What this attention answers from now; nullopt: it answers as ever.
  static std::optional<DecodedFrom> of(const Attention& attention);
};

// Why no model can be scored so with this variant, whether behind a prompt or without one; nullopt:
// it can, or its decoder does not forget.
std::optional<std::string> why_no_steps(const VariantInfo& variant, const Params& params,
                                        bool causal, bool behind_prompt);

}  // namespace attn
