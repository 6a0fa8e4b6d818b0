// See batch_cell.h.
#include "harness/child/batch_cell.h"

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
  const Disturbance disturbance = meter.read();
  const Witness after = stand.look();
  std::vector<ServedCall> calls;
  if (request.key->axes.arrivals) calls = time_calls(spec);
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
  std::vector<double> times, padded_s;
  for (const bool is_padded : {request.draw % 2 == 0, request.draw % 2 != 0}) {
    if (!is_padded) times = time_samples([&] { pass.run(); }, timing);
    if (is_padded && pass.has_padded()) padded_s = time_samples([&] { pass.run_padded(); }, timing);
  }
  const Disturbance disturbance = meter.read();
  const Witness after = stand.look();
  unlimit_memory();
  pass.run_both();
  const Verified found = verify_packed(
      pass, {.whole = request.draw <= 1, .budget_s = comparing_budget(disturbance.seconds)});
  return reply_with(
      Visit{.times = times,
            .later_s = {},
            .calls = {},
            .padded_s = padded_s,
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
