// What the attention of a workload read and answered, for those who compare; see workload.h.
#include <algorithm>
#include <utility>

#include "core/ops/ops.h"
#include "core/ops/ops_heads.h"
#include "harness/measure/workload_cost.h"
#include "harness/measure/workload_state.h"
#include "variants/api/stack.h"

namespace attn {
namespace {

// x [batch, len, heads · head_dim] by heads.
Tensor by_heads(const Tensor& x, int64_t heads) {
  const NoGrad no_grad;
  return split_heads(Var(x), heads).value();
}

// Writes `rows` [batch, heads, count, dim] from position `at` of `all` on.
void put(const Tensor& rows, int64_t at, const Tensor& all) {
  const int64_t matrices = all.dim(0) * all.dim(1), dim = all.dim(3), count = rows.dim(2) * dim;
  for (int64_t i = 0; i < matrices; ++i)
    std::copy_n(rows.data() + i * count, count, all.data() + (i * all.dim(2) + at) * dim);
}

// The first `count` positions.
Tensor first_rows(const Tensor& x, int64_t count) {
  const NoGrad no_grad;
  return slice(Var(x), 2, 0, count).value();
}

Tensor rounded_as(const WorkloadSpec& spec, const Tensor& x) {
  return spec.dtype == Dtype::bfloat16 ? widened(rounded(x)) : x;
}

bool same_numbers(const Tensor& a, const Tensor& b) {
  return a.defined() && b.defined() && a.shape() == b.shape() &&
         std::equal(a.data(), a.data() + a.size(), b.data());
}

}  // namespace

SeenPass WorkloadState::seen_attention() const {
  SeenPass seen{.variant = spec.variant,
                .params = spec.params,
                .attention = attention.get(),
                .causal = spec.causal};
  std::vector<Tensor> x;
  if (spec.dtype == Dtype::bfloat16) {
    seen.widened = !attention->reads_bfloat16();
    for (const BFloat16Tensor& one : rounded_inputs) x.push_back(widened(one));
  } else {
    x = values_of(inputs);
  }
  const Tensor found = spec.dtype == Dtype::bfloat16 ? widened(rounded_answer) : answer;
  if (mixer()) {
    seen.q = seen.k = seen.v = by_heads(x[0], spec.heads);
    seen.out = by_heads(found, spec.heads);
    if (const CarryingMixer* const carrying = as_carrying(*attention)) {
      const NoGrad no_grad;
      if (received.defined()) seen.received = received.value();
      seen.handed = carrying->pass(Var(x[0]), received, {spec.causal, {}}).handed.value();
    }
    return seen;
  }
  const NoGrad no_grad;
  seen.q = x[0];
  seen.k = repeated(x[1]);
  seen.v = repeated(x[2]);
  seen.gates = values_of(gates);
  seen.out = found;
  return seen;
}

std::vector<SeenPass> WorkloadState::seen() {
  ATTN_CHECK(!decoder, "the passes of mode decode are tokens");
  ATTN_CHECK(answer.defined() || rounded_answer.defined(), "nothing has run, or it was forgotten");
  if (spec.scope == ScopeKind::attention) return {seen_attention()};
  const Tensor before = answer;
  watched.clear();
  is_watched = true;
  pass();
  is_watched = false;
  ATTN_CHECK(same_numbers(before, answer), "the same inputs gave another answer in a second pass");
  std::vector<SeenPass> all;
  for (size_t i = 0; i < watched.size(); ++i) {
    const AttentionPass& one = watched[i];
    const LayerVariant of = layer_variant(*spec.variant, spec.params, static_cast<int64_t>(i));
    const bool is_mixer = !one.q.defined();
    const auto heads_of = [&](const Tensor& x) { return is_mixer ? by_heads(x, spec.heads) : x; };
    const Tensor v = heads_of(one.v);
    all.push_back({.variant = of.variant.get(),
                   .params = of.params,
                   .attention = one.attention,
                   .q = is_mixer ? v : one.q,
                   .k = is_mixer ? v : one.k,
                   .v = v,
                   .gates = one.gates,
                   .out = heads_of(one.out),
                   .causal = one.mask.causal,
                   .received = one.received,
                   .handed = one.handed});
  }
  watched.clear();
  return all;
}

// Of all positions and one more, [batch, heads, length + 1, dim].
struct WorkloadState::Held {
  Tensor q, k, v;
  std::vector<Tensor> gates;
};

// A decoder that takes queries as keys got the keys of its positions as such; of others, those that
// forget alone read a query of an earlier position.
void WorkloadState::make_held() {
  const int64_t count = spec.length + 1, many = prefill_positions(spec);
  const Shape row{spec.batch, spec.heads, count, spec.head_dim};
  held = std::make_shared<Held>(Held{Tensor(row), Tensor(row), Tensor(row), {}});
  for (const Tensor& gate : step_gates) held->gates.emplace_back(gate.shape().with(2, count));
  for (int64_t at = 0; at < spec.length - 1; at += many) {
    const Prefill then = drawn_prefill(spec, *attention, at, std::min(many, spec.length - 1 - at));
    const Tensor keys = repeated(rounded_as(spec, then.keys));
    put(then.queries.defined() ? rounded_as(spec, then.queries) : keys, at, held->q);
    put(keys, at, held->k);
    put(repeated(rounded_as(spec, then.values)), at, held->v);
    for (size_t i = 0; i < then.gates.size(); ++i) put(then.gates[i], at, held->gates[i]);
  }
}

SeenPass WorkloadState::seen(SeenToken which) {
  ATTN_CHECK(decoder && runs >= 2, "no two tokens were decoded");
  const NoGrad no_grad;
  if (!held) make_held();
  const auto put_token = [&](int64_t run, int64_t at) {
    changing.take(run);
    changing_rounded.take(run);
    std::vector<Tensor> x;
    for (const BFloat16Tensor& one : rounded_inputs) x.push_back(widened(one));
    for (const Var& one : inputs) x.push_back(one.value());
    put(x[0], at, held->q);
    put(repeated(x[1]), at, held->k);
    put(repeated(x[2]), at, held->v);
    for (size_t i = 0; i < step_gates.size(); ++i) put(step_gates[i], at, held->gates[i]);
  };
  const int64_t run = which == SeenToken::first ? 0 : which == SeenToken::last ? runs - 1 : 1;
  int64_t count = spec.length;
  if (which == SeenToken::second_after_first) put_token(0, count++ - 1);
  put_token(run, count - 1);
  SeenPass seen{.variant = spec.variant,
                .params = spec.params,
                .attention = attention.get(),
                .q = first_rows(held->q, count),
                .k = first_rows(held->k, count),
                .v = first_rows(held->v, count),
                .out = Tensor({spec.batch, spec.heads, 1, spec.head_dim}),
                .causal = true,
                .widened = spec.dtype == Dtype::bfloat16 && !decoder->keeps_bfloat16()};
  for (const Tensor& gate : held->gates) seen.gates.push_back(first_rows(gate, count));
  const Tensor last = spec.dtype == Dtype::bfloat16 ? widened(rounded_out) : out;
  std::copy_n(which == SeenToken::last ? last.data() : first_answers.data() + run * last.size(),
              last.size(), seen.out.data());
  return seen;
}

}  // namespace attn
