// Compares decode steps with a causal forward pass, or, of a decoder that forgets, with what the
// reference says of its steps: the rows are equal for any length of prefill, with and without
// shared keys, and after step_back(). Compares the declared state, FLOPs and bytes
// with the allocated state and the counters. Costs a few times 300 steps per shape.
#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/counters.h"
#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "harness/check/decoding_case.h"
#include "harness/check/variant_checks.h"

namespace attn {
namespace {

constexpr double kAllowedShare = 0.05;  // relative

constexpr int64_t kLengthAtHeads = 67;  // where other heads are tried, and cuts in two
constexpr int64_t kCutTwice = 7;        // where every two cuts are

void step(Decoder& decoder, const Inputs& at, const Tensor& out) {
  decoder.step(at.q, at.k, at.v, out, at.gates);
}

// Appends the first `prefill` positions at once, answers the others, and returns their rows.
Tensor decoded(Decoder& decoder, const Inputs& x, int64_t prefill) {
  extend(decoder, x, 0, prefill);
  return answered(decoder, x, prefill, x.q.dim(2));
}

Tensor with_last(const Tensor& t, const Tensor& last) {
  const NoGrad no_grad;
  const std::vector<Var> both = {Var(t), Var(last)};
  return concat(both, 2).value().clone();
}

void compare_rows(const DecodingCase& c, double scale, Verdict& verdict) {
  const int64_t n = c.shape.kv_len;
  for (const int64_t prefill : std::set<int64_t>{0, n / 2, n - 1}) {
    const DecodeSteps steps = c.steps_after(prefill, n);
    const Inputs x = c.inputs(61, steps, scale);
    const Tensor all = c.output(x, steps);
    const auto decoder = c.decoder();
    const Gap off = gap(decoded(*decoder, x, prefill), part(all, 2, prefill, n));
    // The logarithm of a weight is rounded as a product of inputs is, so that the error of the
    // weight grows with their scale.
    verdict.expect(off.size, c.allowed * std::max(1.0, scale),
                   "position {} decoded after {} appended at once is off by {:.1e} against the "
                   "{} ({}, inputs of scale {:g})",
                   prefill + off.row, prefill, off.size,
                   c.forgets() ? "reference" : "causal forward", c.name(), scale);
  }
}

// Prefill in two parts equals prefill at once, and a second decoder of the same attention, which
// takes other positions at the same time, changes nothing.
void compare_states(const DecodingCase& c, Verdict& verdict) {
  const int64_t n = c.shape.kv_len;
  if (n < 3) return;
  const DecodeSteps steps = c.steps_after(n - 1, n);
  const Inputs x = c.inputs(64, steps), other = c.inputs(65, steps);
  const Tensor all = c.output(x, steps);
  const auto decoder = c.decoder(), second = c.decoder();
  extend(*decoder, x, 0, n / 3);
  extend(*second, other, 0, n / 2);
  extend(*decoder, x, n / 3, n - 1);
  extend(*second, other, n / 2, n - 1);
  const Inputs last = part(x, 2, n - 1, n);
  const Tensor out(last.q.shape());
  step(*decoder, last, out);
  const Gap off = gap(out, part(all, 2, n - 1, n));
  verdict.expect(off.size, c.allowed,
                 "the last position is off by {:.1e} after two prefills, beside a second decoder "
                 "({})",
                 off.size, c.name());
}

// Positions appended at once after a step continue it, and a step leaves what it is given as it is.
void compare_turns(const DecodingCase& c, Verdict& verdict) {
  const int64_t n = c.shape.kv_len;
  if (n < 4) return;
  DecodeSteps steps = c.steps_after(n - 1, n);
  steps.is_step[0] = steps.is_step[static_cast<size_t>(n / 2)] = true;
  const Inputs x = c.inputs(66, steps), given = x.clone();
  const Tensor all = c.output(x, steps), out(x.q.shape().with(2, 1));
  const auto decoder = c.decoder();
  const auto step_at = [&](int64_t at) {
    const Inputs here = part(x, 2, at, at + 1), before = part(given, 2, at, at + 1);
    step(*decoder, here, out);
    const Gap off = gap(out, part(all, 2, at, at + 1));
    verdict.expect(off.size, c.allowed,
                   "position {} is off by {:.1e} where steps and prefills take turns ({})", at,
                   off.size, c.name());
    double changed = gap(here.q, before.q).size;
    for (size_t i = 0; i < here.of_keys().size(); i++)
      changed = worst({changed, gap(here.of_keys()[i], before.of_keys()[i]).size});
    verdict.expect(changed, 0, "the step at {} changed its inputs by {:.1e} ({})", at, changed,
                   c.name());
  };
  step_at(0);
  extend(*decoder, x, 1, n / 2);
  step_at(n / 2);
  extend(*decoder, x, n / 2 + 1, n - 1);
  step_at(n - 1);
}

double off(double counted, double declared) {  // one key of weight 1 may cost nothing
  return counted == declared ? 0 : std::abs(counted / declared - 1);
}

// A decoder may count what it declares. So the bytes of a step are also compared with what exists:
// a step writes its position, and reads the state, the weights and its inputs a few times at most.
void compare_with_position(const DecodingCase& c, double bytes, double state, Verdict& verdict) {
  constexpr double kMostReads = 8;
  const double row = sizeof(real) * static_cast<double>(c.shape.batch * c.shape.head_dim);
  const double least = row * static_cast<double>(c.kv_heads);
  verdict.require(bytes >= least * (1 - kAllowedShare),
                  "{:.4g} bytes of a step declared, its position alone is {:.4g} ({})", bytes,
                  least, c.name());
  const double most = state + weight_bytes(c.attention) +
                      row * static_cast<double>(2 * c.kv_heads + 2 * c.shape.heads);
  verdict.require(bytes <= kMostReads * most,
                  "{:.4g} bytes of a step declared; state, weights, inputs and output are {:.4g} "
                  "({})",
                  bytes, most, c.name());
}

// The declared cost is read after the step was made once, because it may depend on the data.
void compare_costs(const DecodingCase& c, Verdict& verdict) {
  const int64_t n = c.shape.kv_len;
  const Inputs x = c.inputs(62, c.steps_after(n - 1, n)), last = part(x, 2, n - 1, n);
  const auto decoder = c.decoder();
  decoded(*decoder, x, n - 1);
  decoder->step_back();
  const Counters before = counters();
  const double flops = decoder->step_flops(), bytes = decoder->step_bytes();
  step(*decoder, last, Tensor(last.q.shape()));
  const double counted_flops = counters().flops - before.flops,
               counted_bytes = counters().bytes - before.bytes;
  verdict.expect(off(counted_flops, flops), kAllowedShare,
                 "{:.4g} FLOPs of a step counted, {:.4g} declared ({})", counted_flops, flops,
                 c.name());
  verdict.expect(off(counted_bytes, bytes), kAllowedShare,
                 "{:.4g} bytes of a step counted, {:.4g} declared ({})", counted_bytes, bytes,
                 c.name());
  const double state = c.attention.state_bytes(c.shape, c.kv_heads),
               held = static_cast<double>(decoder->state_bytes());
  compare_with_position(c, bytes, state, verdict);
  verdict.require(held == state, "a state of {:.0f} bytes held, {:.0f} declared ({})", held, state,
                  c.name());
}

// A cache overwrites the position that was taken back and answers the same; a sum has added it
// twice, as if the sequence ended in two positions alike. Neither holds more than before.
void compare_step_back(const DecodingCase& c, Verdict& verdict) {
  const int64_t n = c.shape.kv_len;
  const Inputs x = c.inputs(63, c.steps_after(n - 1, n)), last = part(x, 2, n - 1, n);
  const auto decoder = c.decoder();
  const Tensor once = decoded(*decoder, x, n - 1), again(once.shape());
  const int64_t held = memory_use().live_total;
  decoder->step_back();
  step(*decoder, last, again);
  const int64_t more = memory_use().live_total - held;
  AttentionShape longer = c.shape;
  longer.q_len = longer.kv_len = n + 1;
  Inputs doubled{with_last(x.q, last.q), with_last(x.k, last.k), with_last(x.v, last.v)};
  for (size_t i = 0; i < x.gates.size(); i++)
    doubled.gates.push_back(with_last(x.gates[i], last.gates[i]));
  const Tensor twice = part(c.output(doubled, longer), 2, n, n + 1);
  const double as_once = gap(again, once).size, as_twice = gap(again, twice).size;
  verdict.expect(as_twice <= c.allowed ? as_twice : as_once, c.allowed,
                 "a step taken back and made again is off by {:.1e} against the first one and by "
                 "{:.1e} against two positions alike ({})",
                 as_once, as_twice, c.name());
  verdict.require(more <= 0, "{} more bytes held after a step taken back and made again ({})", more,
                  c.name());
}

void check_at(const Subject& subject, const AttentionShape& shape, int64_t kv_heads,
              Verdict& verdict) {
  if (subject.info.why_no_decoder(shape, subject.params)) return;
  AttentionShape longer = shape;  // what is built for a longest length sees one more at the end
  longer.q_len = longer.kv_len = shape.kv_len + 1;
  const auto attention = subject.build(longer);
  move_weights(*attention, 67);
  const DecodingCase c{*attention, shape, kv_heads, kDecodingGap * subject.info.rounding};
  compare_rows(c, 1, verdict);
  // Logits of up to 50 or so. There most weights are 0 or 1 to the last bit of a double, so that
  // their sums over heads tie: inputs within rounding tie too and do not reveal it, while the
  // decoder's weights, rounded to float, may make either choice.
  const Forgetting* const forgetting = c.forgets();
  if (!forgetting || !forgetting->sums_over_heads(kv_heads)) compare_rows(c, 3, verdict);
  compare_states(c, verdict);
  compare_turns(c, verdict);
  compare_costs(c, verdict);
  compare_step_back(c, verdict);
  if (shape.kv_len == kCutTwice) compare_splits(c, verdict);
  if (shape.kv_len == kLengthAtHeads) compare_long_splits(c, subject.full(), verdict);
  constexpr int64_t kLongest = 200;  // compare_kept() costs length / head_dim decodings
  if (c.forgets() && kv_heads < shape.heads && shape.kv_len <= kLongest)
    compare_kept(c.forgetting(), verdict);
}

void check_length(const Subject& subject, int64_t length, int64_t heads, int64_t kv_heads,
                  Verdict& verdict, int64_t head_dim = 8) {
  check_at(subject,
           {.batch = 2,
            .heads = heads,
            .q_len = length,
            .kv_len = length,
            .head_dim = length == kCutTwice ? 5 : head_dim,  // odd: tails of vector loops
            .causal = true},
           kv_heads, verdict);
}

void check_sharing(const Subject& subject, int64_t length, Verdict& verdict) {
  check_length(subject, length, 2, 2, verdict);
  check_length(subject, length, 4, 2, verdict);  // two query heads for each head of keys
}

// Where a decoder forgets that keeps more than the other lengths have; 0: it does not forget. The
// reference of what it keeps takes up to n² operations a head: beyond 2000 positions nothing is
// checked.
int64_t length_past(const Subject& subject) {
  constexpr int64_t kLongest = 2000, kBeyond = 20, kLeast = 40;
  const AttentionShape shape{.q_len = kLeast, .kv_len = kLeast, .head_dim = 8, .causal = true};
  if (subject.info.why_no_decoder(shape, subject.params)) return 0;
  const auto attention = subject.build(shape);
  const Forgetting* const forgetting = as_forgetting(*attention);
  if (!forgetting) return 0;
  const int64_t first = *forgetting->forgets_from();
  return first + kBeyond <= kLongest ? std::max(kLeast, first + kBeyond) : kLeast;
}

}  // namespace

void check_decode(const Subject& subject, Verdict& verdict) {
  if (subject.only) {
    AttentionShape shape = *subject.only;
    const int64_t past = length_past(subject);
    shape.q_len = shape.kv_len = past > 0 ? past : kLengthAtHeads;
    const int64_t shared = subject.only_kv_heads;
    if (shape.causal) check_at(subject, shape, shared > 0 ? shared : shape.heads, verdict);
    return;
  }
  std::vector<int64_t> lengths = {1, kCutTwice, 65, 131};
  if (subject.full()) lengths = {1, 2, kCutTwice, 33, 64, 65, 66, 130, 131};
  for (const int64_t length : lengths) check_sharing(subject, length, verdict);
  if (const int64_t past = length_past(subject)) {
    check_length(subject, past, 2, 1, verdict);
    check_length(subject, past, 1, 1, verdict);  // nothing is summed over heads
  }
  check_length(subject, kLengthAtHeads, 4, 1, verdict);
  check_length(subject, kLengthAtHeads, 2, 2, verdict, 64);
  if (subject.full()) check_length(subject, kLengthAtHeads, 3, 3, verdict, 65);
  const ScopedThreads three_threads(3);  // do not divide the four heads of a batch
  check_sharing(subject, 300, verdict);
}

}  // namespace attn
