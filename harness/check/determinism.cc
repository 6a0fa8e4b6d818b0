// Checks that the same seed gives the same bits in forward and backward, that another seed gives
// other random features, that recording gradients changes no output, and that the number of threads
// changes results only by rounding. Costs a few forward and backward passes of at most 130
// positions; of 700, if 130 use no random features.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "core/autograd/grad_or_zeros.h"
#include "core/base/parallel.h"
#include "harness/check/variant_checks.h"

namespace attn {
namespace {

constexpr int64_t kLonger = 700;         // positions
constexpr int64_t kLongestRequest = 33;  // where each kind of request is compared
constexpr int64_t kLongestSeeds = 65;    // where gradients of other sizes are compared

std::vector<Tensor> everything(const Gradients& back) {
  std::vector<Tensor> all = {back.output, back.q};
  const std::vector<Tensor> of_keys = back.of_keys();
  all.insert(all.end(), of_keys.begin(), of_keys.end());
  all.insert(all.end(), back.weights.begin(), back.weights.end());
  return all;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return std::memcmp(a.data(), b.data(), static_cast<size_t>(a.size()) * sizeof(real)) == 0;
}

bool same_bits(const Gradients& a, const Gradients& b) {
  const std::vector<Tensor> x = everything(a), y = everything(b);
  for (size_t i = 0; i < x.size(); i++)
    if (!same_bits(x[i], y[i])) return false;
  return true;
}

const char* bits(bool same) { return same ? "the same bits" : "different bits"; }

Gradients run(const Subject& subject, const AttentionShape& shape, uint64_t seed,
              int thread_count) {
  const ScopedThreads scoped(thread_count);
  const auto attention = subject.build(shape, seed);
  const Inputs x = make_inputs(*attention, shape, 61);
  return gradients_of(*attention, x, mask_of(shape), x.q);
}

// A gradient is linear in the one it comes from: neither large nor small ones are cut. Powers of
// two round nothing.
void compare_seeds(const Attention& attention, const AttentionShape& shape, const Inputs& x,
                   const Tensor& seed, Verdict& verdict) {
  const std::vector<Tensor> base = everything(gradients_of(attention, x, mask_of(shape), seed));
  for (const int power : {14, -20}) {
    const Tensor scaled = seed.clone();
    for (real& value : scaled.values()) value = std::ldexp(value, power);
    const std::vector<Tensor> other =
        everything(gradients_of(attention, x, mask_of(shape), scaled));
    for (size_t i = 1; i < base.size(); i++) {
      for (real& value : other[i].values()) value = std::ldexp(value, -power);
      const double off = gap(other[i], base[i]).size;
      verdict.expect(off, 10 * tolerance(shape.kv_len),
                     "a gradient is off by {:.1e} where the output's is 2^{} times as large ({})",
                     off, power, text(shape));
    }
  }
}

// The gradient of an input does not depend on which other inputs require one. If q, k and v are the
// same Var, it receives the sum of the three gradients.
void compare_requests(const Attention& attention, const AttentionShape& shape, const Inputs& x,
                      const Tensor& seed, Verdict& verdict) {
  const Mask mask = mask_of(shape);
  const Gradients all = gradients_of(attention, x, mask, seed);
  const auto expect = [&](const Var& leaf, const Tensor& wanted, const char* what) {
    const double off = gap(grad_or_zeros(leaf), wanted).size;
    verdict.expect(off, 10 * tolerance(shape.kv_len), "{} is off by {:.1e} ({})", what, off,
                   text(shape));
  };
  const auto backward = [&](const Var& q, const Var& k, const Var& v,
                            const std::vector<Var>& gates) {
    const Var out = attention.forward(q, k, v, mask, gates);
    if (out.requires_grad()) out.backward(seed);
  };
  const std::vector<Var> fixed = leaves_of(x.gates);
  const Var q(x.q, true), k(x.k, true), v(x.v, true);
  backward(q, Var(x.k), Var(x.v), fixed);
  expect(q, all.q, "the gradient of q, where k and v require none,");
  backward(Var(x.q), k, Var(x.v), fixed);
  expect(k, all.k, "the gradient of k, where q and v require none,");
  backward(Var(x.q), Var(x.k), v, fixed);
  expect(v, all.v, "the gradient of v, where q and k require none,");
  for (size_t i = 0; i < x.gates.size(); i++) {
    std::vector<Var> gates = fixed;
    gates[i] = Var(x.gates[i], true);
    backward(Var(x.q), Var(x.k), Var(x.v), gates);
    expect(gates[i], all.gates[i], "the gradient of a gate, where nothing else requires one,");
  }
  if (shape.q_len != shape.kv_len) return;
  const Gradients parts = gradients_of(attention, {x.q, x.q, x.q, x.gates}, mask, seed);
  parts.q.add(parts.k);
  parts.q.add(parts.v);
  const Var same(x.q, true);
  backward(same, same, same, fixed);
  expect(same, parts.q, "the gradient of one input that is q, k and v");
}

}  // namespace

// What is random may have nothing to draw at short lengths: blocks of 64 do not at 130. With
// parameters given it may draw nothing at all.
void check_determinism(const Subject& subject, Verdict& verdict) {
  double moved = 0;
  int64_t longest = 0;
  const auto compare = [&](const AttentionShape& shape) {
    const Gradients first = run(subject, shape, 1, 1);
    const bool same = same_bits(first, run(subject, shape, 1, 1));
    verdict.require(same, "{} from two runs with the same seed ({})", bits(same), text(shape));
    if (!subject.info.traits.random || !subject.defaults() || shape.kv_len < 2) return;
    moved = std::max(moved, gap(run(subject, shape, 2, 1).output, first.output).size);
    longest = std::max(longest, shape.kv_len);
  };
  const std::vector<AttentionShape> shapes = subject.shapes(ShapeKind::all);
  for (const AttentionShape& shape : shapes) compare(shape);
  if (longest > 0 && moved == 0) {
    AttentionShape shape = shapes.front();
    shape.q_len = shape.kv_len = kLonger;
    if (subject.can_run(shape)) compare(shape);
  }
  verdict.require(moved > 0 || longest == 0,
                  "declared random; another seed moves the output by {:.1e}, up to length {}",
                  moved, longest);
}

// Recording gradients changes no output, and neither pass changes its inputs.
void check_recording(const Subject& subject, Verdict& verdict) {
  for (const AttentionShape& shape : subject.shapes(ShapeKind::all)) {
    const auto attention = subject.build(shape);
    const Inputs x = make_inputs(*attention, shape, 62),
                 before = make_inputs(*attention, shape, 62);
    const Tensor plain = output_of(*attention, x, mask_of(shape));
    const Tensor recorded = gradients_of(*attention, x, mask_of(shape), before.q.clone()).output;
    const Gap moved = gap(recorded, plain);
    verdict.expect(moved.size, tolerance(shape.kv_len),
                   "row {} is off by {:.1e} when gradients are recorded ({})", moved.row,
                   moved.size, text(shape));
    if (shape.kv_len <= kLongestRequest)
      compare_requests(*attention, shape, x, before.q.clone(), verdict);
    if (shape.kv_len <= kLongestSeeds)
      compare_seeds(*attention, shape, x, before.q.clone(), verdict);
    const auto require_same = [&](const std::string& name, const Tensor& now, const Tensor& then) {
      verdict.require(same_bits(now, then), "{} is not what it was before the passes ({})", name,
                      text(shape));
    };
    require_same("q", x.q, before.q);
    require_same("k", x.k, before.k);
    require_same("v", x.v, before.v);
    for (size_t i = 0; i < x.gates.size(); i++)
      require_same("gate " + attention->gates()[i].name, x.gates[i], before.gates[i]);
  }
}

void check_threads(const Subject& subject, Verdict& verdict) {
  constexpr int kMore[] = {3, 5, 4, 8};  // in turn: more than there are cores, even and odd
  size_t turn = 0;
  for (const AttentionShape& shape : subject.shapes(ShapeKind::all)) {
    if (shape.q_len > 5 && shape.q_len < 65)
      continue;  // one short, then those that split into tiles
    const Gradients one = run(subject, shape, 1, 1), two = run(subject, shape, 1, 2);
    const bool same = same_bits(two, run(subject, shape, 1, 2));
    verdict.require(same, "{} from two runs on two threads ({})", bits(same), text(shape));
    const std::vector<Tensor> x = everything(one), y = everything(two);
    const int more = kMore[turn++ % std::size(kMore)];
    const std::vector<Tensor> z = everything(run(subject, shape, 1, more));
    for (size_t i = 0; i < x.size(); i++) {
      const double moved = gap(y[i], x[i]).size, further = gap(z[i], x[i]).size;
      const char* const what = i == 0 ? "the output" : "a gradient";
      verdict.expect(moved, 10 * tolerance(shape.kv_len),
                     "{} moved by {:.1e} from one to two threads ({})", what, moved, text(shape));
      verdict.expect(further, 10 * tolerance(shape.kv_len),
                     "{} moved by {:.1e} from one to {} threads ({})", what, further, more,
                     text(shape));
    }
  }
}

}  // namespace attn
