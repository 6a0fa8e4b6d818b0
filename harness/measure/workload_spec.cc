// What a workload is, before anything is built: names, shapes, and why it cannot run; see
// workload.h.
#include <algorithm>

#include <fmt/core.h>

#include "harness/measure/workload.h"
#include "harness/model/residual_blocks.h"
#include "variants/api/forgetting.h"
#include "variants/api/packed_forward.h"
#include "variants/api/stack.h"

namespace attn {
namespace {

// Of keys and values made at a time: the state is all that grows with the length.
constexpr int64_t kPrefillBytes = 8 << 20;

// Of the keys and values of one position, before they are rounded, and of its gates.
int64_t prefill_bytes_each(const WorkloadSpec& spec) {
  const int64_t keys = 2 * spec.key_heads() * spec.head_dim,
                gates = spec.heads * total_width(spec.variant->gates_of(spec.heads, spec.head_dim,
                                                                        spec.chosen()));
  return spec.batch * (keys + gates) * static_cast<int64_t>(sizeof(real));
}

// A prompt is a forward pass; the tokens after it are steps.
std::optional<std::string> why_not_served(const WorkloadSpec& spec, const Params& params) {
  if (auto reason = spec.variant->why_no_decoder(spec.shape(), params)) return reason;
  if (forgets_of(*spec.variant, params))
    return "a workload's answers are those of the forward, and this decoder forgets";
  for (const SequenceGroup& group : spec.served) {
    if (!group.is_prompt()) continue;
    AttentionShape shape = spec.shape();
    shape.batch = group.count;
    shape.q_len = shape.kv_len = group.queries;
    if (auto reason = spec.variant->why_not(shape, params)) return reason;
  }
  return std::nullopt;
}

}  // namespace

AttentionShape WorkloadSpec::shape() const {
  return {.batch = batch,
          .heads = heads,
          .q_len = length,
          .kv_len = length,
          .head_dim = head_dim,
          .causal = causal,
          .dtype = dtype,
          .cache = cache};
}

Params WorkloadSpec::chosen() const { return {variant->name, variant->params, params}; }

std::string to_string(Mode mode) {
  if (mode == Mode::forward) return "forward";
  if (mode == Mode::serve) return "serve";
  return mode == Mode::train ? "train" : "decode";
}

std::string to_string(ScopeKind scope) {
  if (scope == ScopeKind::attention) return "attention";
  return scope == ScopeKind::layer ? "layer" : "model";
}

std::optional<std::string> why_contradictory(const WorkloadSpec& spec) {
  if (spec.variant->is_stack() && spec.scope != ScopeKind::model)
    return "a stack of layers is measured at scope model alone";
  const bool is_bfloat16 = spec.dtype == Dtype::bfloat16;
  if (is_bfloat16 && spec.mode == Mode::train)
    return "bfloat16 has no backward pass; its modes are forward and decode";
  if (is_bfloat16 && spec.scope != ScopeKind::attention)
    return "bfloat16 is measured at scope attention alone";
  if (is_bfloat16 && spec.mode == Mode::serve)
    return "a workload is served in float32; its caches may be of another type (--kv-dtype)";
  if (!spec.packed.empty()) {
    if (decodes(spec.mode)) return "sequences are packed in modes forward and train";
    if (spec.scope != ScopeKind::attention) return "sequences are packed at scope attention alone";
    if (is_bfloat16) return "packed sequences are measured in float32";
  }
  if (!decodes(spec.mode)) return std::nullopt;
  if (!spec.causal) return "decoding is causal";
  if (spec.scope != ScopeKind::attention) return "decoding is measured at scope attention alone";
  return std::nullopt;
}

std::optional<std::string> why_not(const WorkloadSpec& spec) {
  const AttentionShape shape = spec.shape();
  const Params params = spec.chosen();
  if (auto reason = why_contradictory(spec)) return reason;
  if (auto reason = why_no_repetition(*spec.variant, spec.layers)) return reason;
  if (auto reason = why_no_sharing(*spec.variant, spec.heads, spec.kv_heads)) return reason;
  if (spec.cache != CacheType::float32) {
    if (!spec.causal)
      return "a cache of keys and values is of decoding, which is causal; add --causal true";
    if (auto reason = spec.variant->why_no_decoder(shape, params)) return reason;
    if (!spec.variant->traits.typed_cache)
      return fmt::format("its decoder has no cache of {}", name_of(spec.cache));
  }
  if (spec.mode == Mode::serve) return why_not_served(spec, params);
  if (!spec.packed.empty()) return why_not_packed(*spec.variant, shape, params, spec.packed);
  if (spec.mode != Mode::decode) {
    auto reason = spec.variant->why_not(shape, params);
    if (reason && spec.variant->lacks_causal(shape)) *reason += "; add --causal true";
    return reason;
  }
  return spec.variant->why_no_decoder(shape, params);
}

int64_t prefill_positions(const WorkloadSpec& spec) {
  const int64_t each = prefill_bytes_each(spec);
  return std::clamp<int64_t>(kPrefillBytes / each, 1, std::max<int64_t>(1, spec.length - 1));
}

int64_t prefill_bytes(const WorkloadSpec& spec) {
  return spec.length > 1 ? prefill_positions(spec) * prefill_bytes_each(spec) : 0;
}

}  // namespace attn
