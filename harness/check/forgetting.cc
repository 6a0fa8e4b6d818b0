// See forgetting.h. A step's weight of a position is 0 where it does not see the position, exactly,
// and above 0 elsewhere. Costs length / head_dim decodings, and evaluations of the reference with
// as many channels as positions.
#include "harness/check/forgetting.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/base/memory.h"
#include "core/ops/ops_heads.h"
#include "harness/check/tied_rows.h"

namespace attn {
namespace {

constexpr int kMostSeeds = 30;
// Of outputs: another choice moves them by more, rounding of queries and keys by less.
constexpr double kMoved = 1e-4;

Tensor repeated(const Tensor& x, int64_t times) {
  const NoGrad no_grad;
  return repeat_heads(Var(x), times).value();
}

// The weights [batch, heads, len, len] of the steps.
oracle::Array weights_of(const ForgettingCase& c, ReferenceInputs inputs,
                         const DecodeSteps& steps) {
  const int64_t n = inputs.k.len;
  inputs.v = oracle::Array(inputs.k.batch, inputs.k.heads, n, n);
  for (int64_t m = 0; m < inputs.k.batch * inputs.k.heads; ++m)
    for (int64_t j = 0; j < n; ++j) inputs.v.x[static_cast<size_t>((m * n + j) * n + j)] = 1;
  return c.forgetting.step_answers(inputs, steps);
}

// Whether queries and keys within rounding leave every choice as it is.
bool is_clear(const ForgettingCase& c, const Inputs& x, const DecodeSteps& steps) {
  const ReferenceInputs inputs = c.reference_inputs(x);
  const oracle::Array answers = c.forgetting.step_answers(inputs, steps);
  Rng random = rng(79, "near inputs");
  const oracle::Array near = c.forgetting.step_answers(within_rounding(inputs, random), steps);
  for (size_t i = 0; i < near.x.size(); ++i)
    if (!(std::abs(near.x[i] - answers.x[i]) <= kMoved)) return false;
  return true;
}

// Calls take(i, out) for each step, and appends what stands between steps at once.
template <class Take>
void decode(Decoder& decoder, const Inputs& x, const DecodeSteps& steps, const Take& take) {
  const int64_t n = x.q.dim(2);
  const Tensor out(x.q.shape().with(2, 1));
  for (int64_t i = 0; i < n; ++i) {
    int64_t end = i;
    while (end < n && !steps.is_step[static_cast<size_t>(end)]) ++end;
    if (end > i) extend(decoder, x, i, end);
    i = end;
    if (i == n) return;
    const Inputs here = part(x, 2, i, i + 1);
    decoder.step(here.q, here.k, here.v, out, here.gates);
    take(i, out);
  }
}

void compare_schedule(const ForgettingCase& c, const DecodeSteps& steps, Verdict& verdict) {
  const int64_t n = c.shape.kv_len, dim = c.shape.head_dim;
  Inputs x = c.inputs(68, 1, steps);
  const oracle::Array wanted = weights_of(c, c.reference_inputs(x), steps);
  const std::string schedule =
      fmt::format("{}, {} heads of keys for {}, {} steps", text(c.shape), c.kv_heads, c.shape.heads,
                  std::count(steps.is_step.begin(), steps.is_step.end(), true));
  for (int64_t first = 0; first < n; first += dim) {
    x.v = Tensor::zeros(x.v.shape());
    for (int64_t m = 0; m < x.v.dim(0) * x.v.dim(1); ++m)
      for (int64_t j = first; j < std::min(n, first + dim); ++j)
        x.v[(m * n + j) * dim + j - first] = 1;
    const auto decoder = c.decoder();
    int64_t held = 0, grown = 0;
    decode(*decoder, x, steps, [&](int64_t i, const Tensor& out) {
      if (i < n / 2) held = memory_use().live_total;
      if (held > 0) grown = std::max(grown, memory_use().live_total - held);
      for (int64_t m = 0; m < out.dim(0) * out.dim(1); ++m)
        for (int64_t j = first; j < std::min(i + 1, first + dim); ++j) {
          const bool sees = out[m * dim + j - first] != 0,
                     is_kept = wanted.at(m / out.dim(1), m % out.dim(1), i, j) != 0;
          verdict.require(sees == is_kept, "the step at {} {} position {}, which is {} ({})", i,
                          sees ? "sees" : "does not see", j, is_kept ? "kept" : "forgotten",
                          schedule);
        }
    });
    const bool all_steps = std::count(steps.is_step.begin(), steps.is_step.end(), false) == 0;
    verdict.require(!all_steps || grown <= 0, "{} more bytes held after the second half ({})",
                    grown, schedule);
  }
}

}  // namespace

Inputs ForgettingCase::inputs(uint64_t seed, double scale, const DecodeSteps& steps) const {
  Inputs x;
  for (int draw = 0; draw < kMostSeeds; ++draw) {
    x = make_inputs(attention, shape, seed + static_cast<uint64_t>(1000 * draw), scale);
    x.k = part(x.k, 1, 0, kv_heads);
    x.v = part(x.v, 1, 0, kv_heads);
    if (is_clear(*this, x, steps)) break;
  }
  return x;
}

Tensor ForgettingCase::output(const Inputs& x, const DecodeSteps& steps) const {
  return Tensor::of(x.q.shape(), forgetting.step_answers(reference_inputs(x), steps).x);
}

ReferenceInputs ForgettingCase::reference_inputs(const Inputs& x) const {
  const int64_t times = shape.heads / kv_heads;
  return reference_inputs_of(attention, {x.q, repeated(x.k, times), repeated(x.v, times), x.gates},
                             {true, {}});
}

void compare_kept(const ForgettingCase& c, Verdict& verdict) {
  const int64_t n = c.shape.kv_len;
  compare_schedule(c, DecodeSteps::after(0, n, c.kv_heads), verdict);
  compare_schedule(c, DecodeSteps::after(n / 2, n, c.kv_heads), verdict);
  if (n < 8) return;
  DecodeSteps turns = DecodeSteps::after(3 * n / 4, n, c.kv_heads);
  std::fill(turns.is_step.begin() + n / 2, turns.is_step.begin() + 5 * n / 8, true);
  compare_schedule(c, turns, verdict);  // a prompt, steps, a prompt, steps
}

}  // namespace attn
