// See batch_cell.h.
#include "harness/child/batch_cell.h"

#include <utility>

#include "core/base/parallel.h"
#include "harness/cell/codec.h"
#include "harness/child/comparing.h"
#include "harness/measure/packed_pass.h"
#include "harness/measure/served_calls.h"
#include "harness/measure/serving.h"
#include "harness/measure/speed.h"
#include "harness/verify/packed.h"
#include "harness/verify/served.h"

namespace attn {
namespace {

WorkloadSpec spec_of(const Request& request) {
  WorkloadSpec spec = workload_of(request.key.value());
  spec.draw = static_cast<uint64_t>(request.draw);
  return spec;
}

// Of the packed pass, and of the padded one where there is one; in visits by turns either is first.
PairedSamples packed_samples(PackedPass& pass, bool is_packed_first, const TimingOptions& timing) {
  const auto packed = [&] { pass.run(); };
  const auto padded = [&] { pass.run_padded(); };
  if (!pass.has_padded()) return {time_samples(packed, timing), {}};
  if (is_packed_first) return time_in_turn(packed, padded, timing);
  PairedSamples samples = time_in_turn(padded, packed, timing);
  std::swap(samples.first, samples.second);
  return samples;
}

}  // namespace

Json served_cell(const Request& request) {
  pin_threads({request.cpus.begin(), request.cpus.end()});
  const WorkloadSpec spec = spec_of(request);
  Serving serving(spec);
  const WitnessStand stand(spec.threads);
  const double flops = serving.first_call_flops();
  serving.call();
  const Witness before = stand.look();
  const DisturbanceMeter meter;
  const ServedTimes times = serving.time_rounds(request.repetitions);
  std::vector<ServedCall> calls;
  if (request.key->axes.arrivals) calls = time_calls(spec);
  const Disturbance disturbance = meter.read();
  const Witness after = stand.look();
  unlimit_memory();
  return reply_with(
      Visit{.times = times.first_s,
            .later_s = times.later_s,
            .calls = calls,
            .padded_s = {},
            .flops = flops,
            .cost = CostSource::measured,
            .dtype = std::nullopt,
            .bytes = std::nullopt,
            .state_bytes = serving.state_bytes(),
            .witness = slower_of(before, after),
            .disturbance = disturbance,
            .marked = {},
            .sizes = std::nullopt,
            .verified = verify_served(serving, comparing_budget(disturbance.seconds))});
}

Json packed_cell(const Request& request) {
  pin_threads({request.cpus.begin(), request.cpus.end()});
  const WorkloadSpec spec = spec_of(request);
  PackedPass pass(spec);
  TimingOptions timing;
  timing.repetitions = static_cast<int>(request.repetitions);
  const WitnessStand stand(spec.threads);
  const Witness before = stand.look();
  const DisturbanceMeter meter;
  const PairedSamples samples = packed_samples(pass, request.draw % 2 != 0, timing);
  const Disturbance disturbance = meter.read();
  const Witness after = stand.look();
  unlimit_memory();
  pass.run_both();
  const Verified found = verify_packed(
      pass, {.whole = request.draw <= 1, .budget_s = comparing_budget(disturbance.seconds)});
  return reply_with(
      Visit{.times = samples.first,
            .later_s = {},
            .calls = {},
            .padded_s = samples.second,
            .flops = pass.flops(),
            .cost = pass.declares_cost() ? CostSource::declared : CostSource::measured,
            .dtype = std::nullopt,
            .bytes = pass.bytes(),
            .state_bytes = std::nullopt,
            .witness = slower_of(before, after),
            .disturbance = disturbance,
            .marked = {},
            .sizes = std::nullopt,
            .verified = found});
}

}  // namespace attn
