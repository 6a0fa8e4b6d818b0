// Compares declared with measured cost: FLOPs of both passes from the counters of the kernels, peak
// bytes from the pool, and the growth with the length. Without declared cost, checks the counts.
// Costs a few forward passes of at most 700 positions, in one thread.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/counters.h"
#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "harness/check/process_memory.h"
#include "harness/check/variant_checks.h"
#include "variants/api/counted_cost.h"

namespace attn {
namespace {

constexpr double kAllowedCost = 0.05;    // relative
constexpr double kSlackBytes = 8 << 10;  // rounding of blocks to 64 bytes, lengths, small tables
constexpr double kLinear = 1.05;         // largest exponent that still counts as linear
constexpr int64_t kShort = 1 << 15, kLong = 1 << 18;  // far beyond any window, rank or tile

CountedCost counted(const Subject& subject, const AttentionShape& shape) {
  const ScopedThreads one_thread(1);
  return counted_cost(*subject.build(shape), shape);
}

double counted_backward_flops(const Subject& subject, const AttentionShape& shape) {
  const ScopedThreads one_thread(1);
  const auto attention = subject.build(shape);
  const Inputs x = make_inputs(*attention, shape, 52);
  const Tensor seed = Tensor::normal(x.q.shape(), rng(53, "check flops"));
  const Var out = attention->forward(Var(x.q, true), Var(x.k, true), Var(x.v, true), mask_of(shape),
                                     leaves_of(x.gates, true));
  const double before = counters().flops;
  out.backward(seed);
  return counters().flops - before;
}

std::vector<AttentionShape> shapes(const Subject& subject) {
  std::vector<AttentionShape> result;
  for (const int64_t length : {int64_t{300}, int64_t{700}}) {
    if (length > 300 && !subject.full()) continue;
    for (const bool causal : {false, true})
      for (const int64_t q_len : {length, length / 4}) {
        AttentionShape shape{.batch = 2,
                             .heads = 2,
                             .q_len = q_len,
                             .kv_len = length,
                             .head_dim = 16,
                             .causal = causal};
        // Another batch, other heads and another head size: a formula may have forgotten one.
        if (q_len != length) shape.batch = 1, shape.heads = 3, shape.head_dim = 40;
        if (length > 300) shape.batch = 3, shape.heads = 1, shape.head_dim = 24;
        if (subject.can_run(shape)) result.push_back(shape);
      }
  }
  return result;
}

constexpr double kMostPasses = 4;

double declared_exponent(const Subject& subject, double Cost::*field) {
  AttentionShape shape{
      .batch = 1, .heads = 1, .q_len = kShort, .kv_len = kShort, .head_dim = 32, .causal = false};
  if (!subject.can_run(shape)) shape.causal = true;
  if (!subject.can_run(shape)) return 0;
  // The formula needs no weights of that length, and fixed-length variants would make them.
  AttentionShape small = shape;
  small.q_len = small.kv_len = 1024;
  const auto attention = subject.build(subject.can_run(small) ? small : shape);
  const double low = attention->cost(shape).*field;
  shape.q_len = shape.kv_len = kLong;
  return std::log(attention->cost(shape).*field / low) / std::log(double{kLong} / double{kShort});
}

// Of a variant that declares no cost: how what was counted grows between lengths that a test can
// afford. A window of 64 keys gives 1.04 there, all pairs 1.8 and more.
constexpr int64_t kCountedShort = 512, kCountedLong = 2048;
constexpr double kCountedLinear = 1.2;

double counted_exponent(const Subject& subject, double CountedCost::*field) {
  AttentionShape shape{.batch = 1, .heads = 1, .head_dim = 16, .causal = false};
  double seen[2] = {};
  for (const int64_t length : {kCountedShort, kCountedLong}) {
    shape.q_len = shape.kv_len = length;
    shape.causal = !subject.can_run(shape);
    if (!subject.can_run(shape)) return 0;
    seen[length == kCountedLong] = counted(subject, shape).*field;
  }
  return seen[0] > 0 ? std::log(seen[1] / seen[0]) / std::log(double{kCountedLong} / kCountedShort)
                     : 0;
}

// What is counted of one field: a promise to grow linearly must hold, and the figures are there to
// be written down.
void tell_counted(const Subject& subject, double CountedCost::*field, const char* unit,
                  bool promised, Verdict& verdict) {
  if (promised && subject.defaults()) {
    const double exponent = counted_exponent(subject, field);
    verdict.expect(exponent, kCountedLinear,
                   "{} grow with the length to the power {:.2f}, promised linear", unit, exponent);
  }
  std::string figures;
  for (const int64_t length : {int64_t{300}, int64_t{600}}) {
    AttentionShape shape{.batch = 2, .heads = 2, .q_len = length, .kv_len = length, .head_dim = 16};
    shape.causal = !subject.can_run(shape);
    if (subject.can_run(shape))
      figures += fmt::format("{}{:.4g} {} at {}", figures.empty() ? "" : ", ",
                             counted(subject, shape).*field, unit, text(shape));
  }
  if (!figures.empty())
    verdict.skip(fmt::format(
        "not declared; counted: {} (2 x 2 heads of 16); a formula: attnbench check {} --derive",
        figures, subject.info.name));
}

// The process may not grow by more than the pool counts, and not at all once the pool holds its
// blocks: a matrix of n×n numbers in a std::vector, of one thread or each, shows here.
// The allowed excess of a first pass is for stacks, tables and blocks of other sizes that the pool
// keeps, which can be as much again in a pass with gradients, and for huge pages, which round
// blocks up to 2 MiB: a correct variant with a gate grew by 2 to 10 MiB more than the pool counts.
// A second pass finds all of them there: even a matrix of bytes shows. The kernel may still give a
// block its huge page in that pass, once (7 MiB were seen); what a variant takes itself shows in
// other passes too: two of three later passes must stay below the limit.
constexpr int64_t kBesideFirst = 12 << 20, kBesideSecond = 3 << 20;
constexpr int kLaterPasses = 3;
constexpr int64_t kLengthOfMatrix = 2048;

void look_beside_the_pool(const Subject& subject, bool causal, bool gradients, Verdict& verdict) {
  AttentionShape shape{
      .q_len = kLengthOfMatrix, .kv_len = kLengthOfMatrix, .head_dim = 16, .causal = causal};
  if (!subject.can_run(shape)) return;
  const ScopedThreads two_threads(2);
  const auto attention = subject.build(shape);
  const Inputs x = make_inputs(*attention, shape, 51);
  const auto run = [&] {
    if (gradients)
      gradients_of(*attention, x, mask_of(shape), x.q);
    else
      output_of(*attention, x, mask_of(shape));
  };
  release_free_memory();
  reset_memory_peak();
  const int64_t live = memory_use().live_total;
  const auto expect = [&](int64_t growth, int64_t pooled, int64_t allowed, std::string_view pass) {
    verdict.require(growth - pooled <= allowed,
                    "the process grew by {:.1f} MiB in {}{}, of which the pool counts {:.1f} "
                    "({}): memory must come from the pool, as that of tensors does",
                    static_cast<double>(growth) / (1 << 20), pass,
                    gradients ? " with gradients" : "", static_cast<double>(pooled) / (1 << 20),
                    text(shape));
  };
  const std::optional<int64_t> first = resident_growth(run);
  if (!first) return;
  const int64_t pooled = memory_use().peak_total - live;
  expect(*first, pooled, kBesideFirst + (gradients ? pooled : 0), "the first pass");
  std::vector<int64_t> later;
  const auto within = [&] {
    return std::ranges::count_if(later, [](int64_t growth) { return growth <= kBesideSecond; });
  };
  while (std::ssize(later) < kLaterPasses && within() < 2)
    later.push_back(resident_growth(run).value_or(0));
  std::ranges::sort(later);
  expect(later[1], 0, kBesideSecond, "two of three later passes");
}

}  // namespace

void check_flops(const Subject& subject, Verdict& verdict) {
  for (const AttentionShape& shape : shapes(subject)) {
    const std::optional<Cost> declared = subject.build(shape)->declared_cost(shape);
    if (!declared)
      return tell_counted(subject, &CountedCost::flops, "FLOPs", subject.info.traits.linear_time,
                          verdict);
    const CountedCost seen = counted(subject, shape);
    const double measured = seen.flops;
    verdict.expect(std::abs(measured / declared->flops - 1), kAllowedCost,
                   "{:.4g} FLOPs measured, {:.4g} declared ({})", measured, declared->flops,
                   text(shape));
    // A variant that declares no backward_flops gets twice its forward FLOPs: nothing to compare.
    if (declared->backward_flops != 2 * declared->flops) {
      const double back = counted_backward_flops(subject, shape);
      verdict.expect(std::abs(back / declared->backward_flops - 1), kAllowedCost,
                     "{:.4g} FLOPs of a backward pass measured, {:.4g} declared ({})", back,
                     declared->backward_flops, text(shape));
    }
    const VariantInfo::Reads read = subject.info.read_by(subject.params);
    const auto gates = static_cast<double>(
        total_width(subject.info.gates_of(shape.heads, shape.head_dim, subject.params)));
    const auto heads = static_cast<double>(shape.batch * shape.heads);
    const double least =
        sizeof(real) * heads *
        (static_cast<double>(shape.head_dim * (shape.q_len * (1 + read.queries) +  // and output
                                               shape.kv_len * (1 + read.keys))) +  // and values
         gates * static_cast<double>(shape.kv_len));
    verdict.require(declared->bytes >= least * (1 - kAllowedCost),
                    "{:.4g} bytes moved declared, inputs and output are {:.4g} ({})",
                    declared->bytes, least, text(shape));
    // A pass reads its inputs and temporaries a few times at most. Their size is counted here;
    // the check of memory compares it with the declared one.
    const double most =
        kMostPasses * (least + seen.peak_bytes + weight_bytes(*subject.build(shape)));
    verdict.require(declared->bytes <= most,
                    "{:.4g} bytes moved declared, inputs, weights and memory are {:.4g} ({})",
                    declared->bytes, most / kMostPasses, text(shape));
    verdict.require(declared->state_bytes >= 0 && std::isfinite(declared->state_bytes),
                    "state of {} bytes ({})", declared->state_bytes, text(shape));
  }
  if (!subject.info.traits.linear_time || !subject.defaults()) return;
  const double exponent = declared_exponent(subject, &Cost::flops);
  verdict.expect(exponent, kLinear,
                 "FLOPs grow with the length to the power {:.2f}, declared linear", exponent);
}

void check_memory(const Subject& subject, Verdict& verdict) {
  const AttentionShape any{.q_len = kLengthOfMatrix, .kv_len = kLengthOfMatrix, .head_dim = 16};
  const bool causal_alone = !subject.can_run(any);
  for (const bool causal : {false, true})
    for (const bool gradients : {false, true})
      if (subject.full() || (causal == causal_alone && !gradients))
        look_beside_the_pool(subject, causal, gradients, verdict);
  for (const AttentionShape& shape : shapes(subject)) {
    const std::optional<Cost> declared = subject.build(shape)->declared_cost(shape);
    if (!declared)
      return tell_counted(subject, &CountedCost::peak_bytes, "bytes",
                          subject.info.traits.linear_memory, verdict);
    const double measured = counted(subject, shape).peak_bytes;
    verdict.expect(std::max(0.0, std::abs(measured - declared->peak_bytes) - kSlackBytes) /
                       declared->peak_bytes,
                   kAllowedCost, "peak of {:.4g} bytes measured, {:.4g} declared ({})", measured,
                   declared->peak_bytes, text(shape));
  }
  if (!subject.info.traits.linear_memory || !subject.defaults()) return;
  const double exponent = declared_exponent(subject, &Cost::peak_bytes);
  verdict.expect(exponent, kLinear,
                 "peak bytes grow with the length to the power {:.2f}, declared linear", exponent);
}

}  // namespace attn
