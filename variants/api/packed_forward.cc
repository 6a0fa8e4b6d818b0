// See packed_forward.h. Costs the forward of each sequence and a copy of its answer.
#include "variants/api/packed_forward.h"

#include <fmt/core.h>

#include "core/base/check.h"
#include "core/ops/ops.h"
#include "core/ops/ops_heads.h"
#include "variants/api/expecting.h"
#include "variants/api/mixer.h"
#include "variants/api/on_calling_thread.h"

namespace attn {
namespace {

bool has_learned(const std::vector<Weight>& weights) {
  for (const Weight& weight : weights)
    if (weight.value.requires_grad()) return true;
  return false;
}

// [1, heads, len, width] -> [1, len, width] of a mixer's only head.
Var rows_of(const Var& block) { return reshape(block, {1, block.dim(2), block.dim(3)}); }

void check_inputs(const Attention& attention, std::span<const Var> inputs, const Packing& packing) {
  const bool is_mixer = as_mixer(attention) != nullptr;
  const size_t wanted = is_mixer ? 1 : 3 + attention.gates().size();
  ATTN_CHECK(inputs.size() == wanted, "packed sequences are {} arrays of this variant, got {}",
             wanted, inputs.size());
  const AttentionConfig& config = attention.config();
  for (const Var& input : inputs) {
    ATTN_CHECK(input.defined(), "a packed array is missing");
    const int64_t heads = packing.heads_of(input.value());
    ATTN_CHECK(is_mixer ? heads == 1 : heads >= 1 && config.heads % heads == 0,
               "a packed array has {} heads; the variant has {}", heads,
               is_mixer ? 1 : config.heads);
  }
  ATTN_CHECK(packing.longest() <= config.max_len,
             "a packed sequence of {} positions; the variant was built for {}", packing.longest(),
             config.max_len);
}

Var sequence_by_sequence(const Attention& attention, std::span<const Var> inputs,
                         const Packing& packing) {
  const bool is_mixer = as_mixer(attention) != nullptr;
  const Mask mask{attention.config().causal, {}};
  const bool learned = has_learned(attention.weights());
  const AtATime at_a_time = dynamic_cast<const OnCallingThread*>(&attention) ? AtATime::nothing
                            : learned                                        ? AtATime::forward
                                                                             : AtATime::all;
  return answer_each(packing, inputs, attention.config().heads, at_a_time, learned,
                     [&](std::span<const Var> blocks) {
                       if (!is_mixer) return forward_of(attention, blocks, mask);
                       const Var rows = rows_of(blocks[0]);
                       return forward_of(attention, {&rows, 1}, mask);
                     });
}

}  // namespace

Var forward_of(const Attention& attention, std::span<const Var> inputs, const Mask& mask) {
  if (const Mixer* const mixer = as_mixer(attention)) return mixer->mix(inputs[0], mask);
  const int64_t heads = attention.config().heads;
  const auto for_queries = [&](const Var& x) {
    return x.dim(1) == heads ? x : repeat_heads(x, heads / x.dim(1));
  };
  return attention.forward(inputs[0], for_queries(inputs[1]), for_queries(inputs[2]), mask,
                           inputs.subspan(3));
}

Var packed_forward(const Attention& attention, std::span<const Var> inputs,
                   const Packing& packing) {
  check_inputs(attention, inputs, packing);
  if (const auto* const expecting = dynamic_cast<const ExpectsSequences*>(&attention))
    expecting->expect(packing);
  Var out = sequence_by_sequence(attention, inputs, packing);
  ATTN_CHECK(out.shape() == inputs[0].shape(), "a variant returned {} for packed {}",
             out.shape().str(), inputs[0].shape().str());
  return out;
}

std::optional<std::string> why_not_packed(const VariantInfo& variant, AttentionShape shape,
                                          const Params& params,
                                          const std::vector<int64_t>& lengths) {
  if (variant.is_stack())
    return "sequences are packed at scope attention alone, and a stack has layers";
  shape.batch = 1;
  for (const int64_t length : lengths) {
    shape.q_len = shape.kv_len = length;
    if (auto reason = variant.why_not(shape, params))
      return fmt::format("{} (a sequence of {} positions)", *reason, length);
  }
  return std::nullopt;
}

}  // namespace attn
