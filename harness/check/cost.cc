// Declared against measured: FLOPs by the kernels' counters, peak bytes by the pool, and how the
// formulas grow. Costs a few forwards of at most 700 positions; one thread.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/counters.h"
#include "core/ops.h"
#include "core/parallel.h"
#include "harness/check/variant_checks.h"
#include "variants/mixer.h"

namespace attn {
namespace {

constexpr double kAllowedCost = 0.05;    // relative
constexpr double kSlackBytes = 8 << 10;  // rounding of blocks to 64 bytes, lengths, small tables
constexpr double kLinear = 1.05;         // largest exponent that still counts as linear
constexpr int64_t kShort = 1 << 15, kLong = 1 << 18;  // far beyond any window, rank or tile

struct OneThread {
  OneThread() { set_threads(1); }
  ~OneThread() { set_threads(before); }
  const int before = threads();
};

struct Measured {
  double flops = 0, bytes = 0;
};

Measured measure(const Subject& subject, const AttentionShape& shape) {
  const OneThread one_thread;
  const auto attention = subject.build(shape);
  const NoGrad no_grad;
  const Inputs x = make_inputs(shape, 51);
  const Mixer* const mixer = as_mixer(*attention);
  const Var rows = mixer ? merge_heads(Var(x.v)) : Var();
  const auto run = [&] {
    if (mixer)
      mixer->mix(rows, mask_of(shape));
    else
      output_of(*attention, x, mask_of(shape));
  };
  run();  // what is made on first use is no cost of a forward
  reset_memory_peak();
  const int64_t live = memory_use().live_total;
  const double flops = counters().flops;
  run();
  return {counters().flops - flops, static_cast<double>(memory_use().peak_total - live)};
}

std::vector<AttentionShape> shapes(const Subject& subject) {
  std::vector<AttentionShape> result;
  for (const int64_t length : {int64_t{300}, int64_t{700}}) {
    if (length > 300 && !subject.full()) continue;
    for (const bool causal : {false, true})
      for (const int64_t q_len : {length, length / 4}) {
        const AttentionShape shape{.batch = 2,
                                   .heads = 2,
                                   .q_len = q_len,
                                   .kv_len = length,
                                   .head_dim = 16,
                                   .causal = causal};
        if (subject.can_run(shape)) result.push_back(shape);
      }
  }
  return result;
}

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

}  // namespace

void check_flops(const Subject& subject, Verdict& verdict) {
  for (const AttentionShape& shape : shapes(subject)) {
    const Cost declared = subject.build(shape)->cost(shape);
    const double measured = measure(subject, shape).flops;
    verdict.expect(std::abs(measured / declared.flops - 1), kAllowedCost,
                   "{:.4g} FLOPs measured, {:.4g} declared ({})", measured, declared.flops,
                   text(shape));
    const double arrays = subject.info.traits.mixer ? 1 : 2;  // q and output, k and v
    const double least = sizeof(real) * arrays *
                         static_cast<double>(shape.batch * shape.heads * shape.head_dim) *
                         static_cast<double>(shape.q_len + shape.kv_len);
    verdict.require(declared.bytes >= least * (1 - kAllowedCost),
                    "{:.4g} bytes moved declared, inputs and output are {:.4g} ({})",
                    declared.bytes, least, text(shape));
    verdict.require(declared.state_bytes >= 0 && std::isfinite(declared.state_bytes),
                    "state of {} bytes ({})", declared.state_bytes, text(shape));
  }
  if (!subject.info.traits.linear_time || !subject.defaults()) return;
  const double exponent = declared_exponent(subject, &Cost::flops);
  verdict.expect(exponent, kLinear,
                 "FLOPs grow with the length to the power {:.2f}, declared linear", exponent);
}

void check_memory(const Subject& subject, Verdict& verdict) {
  for (const AttentionShape& shape : shapes(subject)) {
    const double declared = subject.build(shape)->cost(shape).peak_bytes;
    const double measured = measure(subject, shape).bytes;
    verdict.expect(std::max(0.0, std::abs(measured - declared) - kSlackBytes) / declared,
                   kAllowedCost, "peak of {:.4g} bytes measured, {:.4g} declared ({})", measured,
                   declared, text(shape));
  }
  if (!subject.info.traits.linear_memory || !subject.defaults()) return;
  const double exponent = declared_exponent(subject, &Cost::peak_bytes);
  verdict.expect(exponent, kLinear,
                 "peak bytes grow with the length to the power {:.2f}, declared linear", exponent);
}

}  // namespace attn
