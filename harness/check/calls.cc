// Checks that a forward depends on its arguments and weights alone: not on earlier calls, on what
// free memory holds or on random numbers that are no weights; that it keeps no memory, and that no
// pass changes a weight. Costs a dozen passes of at most 65 positions.
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/base/spoil.h"
#include "harness/check/variant_checks.h"

namespace attn {
namespace {

constexpr int64_t kLongestCall = 65;

Gradients passes(const Attention& attention, const AttentionShape& shape, uint64_t seed) {
  return gradients_of(attention, make_inputs(attention, shape, seed), mask_of(shape),
                      make_seed(shape, seed + 1));
}

// Other inputs of the same shape, padded where possible, fewer positions, and a backward pass.
void call_otherwise(const Subject& subject, const Attention& attention,
                    const AttentionShape& shape) {
  AttentionShape fewer = shape;
  fewer.q_len = (shape.q_len + 1) / 2;
  fewer.kv_len = (shape.kv_len + 1) / 2;
  if (subject.can_run(fewer))
    output_of(attention, make_inputs(attention, fewer, 81), mask_of(fewer));
  output_of(attention, make_inputs(attention, shape, 82), mask_of(shape));
  if (subject.info.traits.padding)
    output_of(attention, make_inputs(attention, shape, 83), mask_of(shape, {shape.kv_len, 1}));
  passes(attention, shape, 84);
}

// One thread: each has a workspace, made when it first works.
void look_for_kept_memory(const Attention& attention, const AttentionShape& shape, const Inputs& x,
                          Verdict& verdict) {
  const ScopedThreads one_thread(1);
  for (const bool gradients : {false, true}) {
    const auto call = [&] {
      if (gradients)
        passes(attention, shape, 85);
      else
        output_of(attention, x, mask_of(shape));
    };
    call(), call();
    const int64_t held = memory_use().live_total;
    call();
    const int64_t more = memory_use().live_total - held;
    verdict.require(more <= 0, "{} more bytes held after another {} ({})", more,
                    gradients ? "pass with gradients" : "call", text(shape));
  }
}

std::vector<Tensor> values_of(const Attention& attention) {
  std::vector<Tensor> values;
  for (const Weight& weight : attention.weights()) values.push_back(weight.value.value().clone());
  return values;
}

}  // namespace

void check_calls(const Subject& subject, Verdict& verdict) {
  for (const AttentionShape& shape : subject.shapes(ShapeKind::all, kLongestCall)) {
    const Inputs x = make_inputs(*subject.build(shape), shape, 80);
    const Tensor fresh = output_of(*subject.build(shape), x, mask_of(shape));
    const Gradients back = passes(*subject.build(shape), shape, 86);
    const auto attention = subject.build(shape);
    const auto expect = [&](const char* when) {
      const Gap off = gap(output_of(*attention, x, mask_of(shape)), fresh);
      verdict.expect(off.size, tolerance(shape.kv_len), "row {} is off by {:.1e} {} ({})", off.row,
                     off.size, when, text(shape));
      const Gradients now = passes(*attention, shape, 86);
      double moved = worst({gap(now.output, back.output).size, gap_of_inputs(now, back)});
      for (size_t i = 0; i < now.weights.size(); i++)
        moved = worst({moved, gap(now.weights[i], back.weights[i]).size});
      verdict.expect(moved, 10 * tolerance(shape.kv_len),
                     "a pass with gradients is off by {:.1e} {} ({})", moved, when, text(shape));
    };
    release_free_memory();
    call_otherwise(subject, *attention, shape);
    expect("after calls with other inputs");
    spoil_free_memory();
    expect("where free memory holds NaN: it reads what it has not written");
    look_for_kept_memory(*attention, shape, x, verdict);
  }
}

void check_weights(const Subject& subject, Verdict& verdict) {
  for (const AttentionShape& shape : subject.shapes(ShapeKind::all, kLongestCall)) {
    const auto attention = subject.build(shape);
    const Inputs x = make_inputs(*attention, shape, 84);
    const std::vector<Weight> weights = attention->weights();
    const std::vector<Tensor> before = values_of(*attention);
    const Tensor out = gradients_of(*attention, x, mask_of(shape), x.q).output;
    const auto other = subject.build(shape, 2);  // of another seed, with the same weights
    std::set<std::string> names;
    for (size_t i = 0; i < weights.size(); i++) {
      const Tensor& now = weights[i].value.value();
      const bool same = std::memcmp(now.data(), before[i].data(),
                                    static_cast<size_t>(now.size()) * sizeof(real)) == 0;
      verdict.require(same, "weight {} is {} the two passes ({})", weights[i].name,
                      same ? "the same after" : "changed by", text(shape));
      if (!names.insert(weights[i].name).second)
        verdict.require(false, "two weights are named {}", weights[i].name);
      if (same) other->weights()[i].value.set_value(now);
    }
    if (subject.info.traits.random) continue;  // what it draws may be no weight
    const Gap off = gap(output_of(*other, x, mask_of(shape)), out);
    verdict.expect(off.size, tolerance(shape.kv_len),
                   "row {} is off by {:.1e} under another seed with the same weights; random "
                   "numbers that are no weight need the trait random ({})",
                   off.row, off.size, text(shape));
  }
}

}  // namespace attn
