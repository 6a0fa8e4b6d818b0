// An attention whose decoder forgets positions, so that its steps do not answer what the causal
// forward does. A class that can also derives from Forgetting; its decoder may need the queries of
// a prompt, and then derives from WeighsPrompts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "variants/api/attention.h"
#include "variants/api/reference.h"
#include "variants/api/variant_info.h"

namespace attn {

// How positions came to a decoder.
struct DecodeSteps {
  std::vector<bool> is_step;  // the others were appended at once
  int64_t kv_heads = 1;       // of keys, each of which heads / kv_heads query heads share

  // Of a sequence with `prefill` positions appended at once.
  static DecodeSteps after(int64_t prefill, int64_t length, int64_t kv_heads) {
    DecodeSteps steps{std::vector<bool>(static_cast<size_t>(length), true), kv_heads};
    std::fill_n(steps.is_step.begin(), prefill, false);
    return steps;
  }
};

class Forgetting {
 public:
  virtual ~Forgetting() = default;
  // The first length at which a step does not see all positions before it; nullopt: with these
  // parameters the decoder never forgets.
  virtual std::optional<int64_t> forgets_from() const = 0;
  // Whether it forgets at the end of a prompt alone, and nothing where all positions are steps.
  virtual bool forgets_prompts_alone() const { return false; }
  // Whether it chooses by sums of what several query heads say, of kv_heads heads of keys.
  virtual bool sums_over_heads(int64_t /*kv_heads*/) const { return false; }
  // What the steps answer, in the plainest form, in double: softmax over the positions that are
  // kept, [batch, heads, len, head_dim]. Keys of x are repeated for the heads that share them; its
  // values may have other channels. Of x.rows alone, where these are given.
  virtual oracle::Array step_answers(const ReferenceInputs& x, const DecodeSteps& steps) const = 0;
};

// The attention where its decoder forgets; null: it does not.
inline const Forgetting* as_forgetting(const Attention& attention) {
  const auto* const forgetting = dynamic_cast<const Forgetting*>(&attention);
  return forgetting && forgetting->forgets_from() ? forgetting : nullptr;
}

// The same of a variant with these parameters; nullopt: it does not forget, or cannot decode.
struct Forgets {
  int64_t from = 1;
  bool at_prompt_alone = false;
};
std::optional<Forgets> forgets_of(const VariantInfo& variant, const Params& params);

// A decoder that weighs the positions of a prompt by its queries. Decoder::extend() hands these
// over before the keys and values; it takes steps of query heads that share keys itself.
class WeighsPrompts {
 public:
  virtual ~WeighsPrompts() = default;
  virtual bool weighs_prompts() const = 0;
  virtual void take_queries(const Tensor& q) = 0;  // [batch, heads, len, head_dim]
};

// A decoder that tells which positions its steps see.
class TellsPositions {
 public:
  virtual ~TellsPositions() = default;
  // Those that the last call, a step of queries q [batch, heads, 1, head_dim], saw, its own one
  // too: ascending, of each query head of each batch entry.
  virtual std::vector<std::vector<int32_t>> positions_seen(const Tensor& q) const = 0;
};

inline bool weighs_prompts(const Decoder& decoder) {
  const auto* const weighing = dynamic_cast<const WeighsPrompts*>(&decoder);
  return weighing && weighing->weighs_prompts();
}

}  // namespace attn
