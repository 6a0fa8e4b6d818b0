// One cell measured in this process; see one_cell.h.
#include "harness/child/one_cell.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <iterator>
#include <new>

#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "harness/cell/codec.h"
#include "harness/cell/source_hash.h"
#include "harness/check/contract.h"
#include "harness/child/batch_cell.h"
#include "harness/child/comparing.h"
#include "harness/child/equal_layers.h"
#include "harness/child/fidelity_cell.h"
#include "harness/child/training_cell.h"
#include "harness/measure/breakdown.h"
#include "harness/measure/calibrate.h"
#include "harness/measure/peak_memory.h"
#include "harness/measure/reach.h"
#include "harness/measure/speed.h"
#include "harness/measure/workload_cost.h"
#include "harness/process/process.h"
#include "harness/store/parse.h"
#include "harness/verify/verify.h"
#include "tasks/catalog.h"
#include "variants/catalog.h"

#ifdef ATTN_SANITIZED
#define ATTN_SHADOW_MEMORY 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ATTN_SHADOW_MEMORY 1
#endif
#endif

namespace attn {
namespace {

// Tensors are limited by the pool, exactly; all other memory by the system, with room for the
// program and its threads.
void limit_memory(int64_t bytes) {
  if (bytes <= 0) return;
  set_memory_limit(bytes);
#ifndef ATTN_SHADOW_MEMORY  // a sanitizer reserves terabytes
  constexpr rlim_t kRoom = rlim_t{512} << 20;
  const rlim_t most = static_cast<rlim_t>(bytes) + kRoom;
  rlimit limit{};
  getrlimit(RLIMIT_DATA, &limit);
  limit.rlim_cur = std::min(most, limit.rlim_max);
  setrlimit(RLIMIT_DATA, &limit);
#endif
}

// Gradients are compared once a cell.
Verified verified(Workload& workload, const Request& request, double measuring_s) {
  unlimit_memory();
  return verify(workload, {.whole = request.draw <= 1, .budget_s = comparing_budget(measuring_s)});
}

// A cell's workload, and the sizes of its layers where the cell asks for equal ones.
struct Measured {
  WorkloadSpec spec;
  std::optional<LayerSizes> sizes;
};

Measured measured_of(const Request& request) {
  const CellKey& key = request.key.value();
  Measured found{workload_of(key), std::nullopt};
  WorkloadSpec& spec = found.spec;
  spec.draw = static_cast<uint64_t>(request.draw);
  if (const Equal equal = equal_of(key); equal != Equal::width) {
    found.sizes = equal_layers(
        {.layer = layer_config(spec), .layers = layers_of(spec), .batch = spec.batch}, equal);
    spec.head_dim = found.sizes->width / spec.heads;
    spec.feed_forward = found.sizes->feed_forward;
  }
  return found;
}

// Whether FLOPs, bytes and states are by the variant's formulas, for the row's ledger.
CostSource source_of(const Workload& workload) {
  return workload.declares_cost() ? CostSource::declared : CostSource::measured;
}

std::optional<StoredDtype> dtype_of(const Workload& workload) {
  const Dtype dtype = workload.spec().dtype;
  if (dtype == Dtype::float32) return std::nullopt;
  return StoredDtype{dtype, workload.widens() ? DtypePath::converted : DtypePath::native};
}

Json speed(const Request& request) {
  const Measured measured = measured_of(request);
  pin_threads({request.cpus.begin(), request.cpus.end()});
  Workload workload(measured.spec);
  TimingOptions timing;
  timing.repetitions = static_cast<int>(request.repetitions);
  const WitnessStand stand(workload.spec().threads);
  const Witness before = stand.look();
  const DisturbanceMeter meter;
  const std::vector<double> times = time_samples(workload, timing);
  const Disturbance disturbance = meter.read();
  const Witness after = stand.look();
  const Verified found = verified(workload, request, disturbance.seconds);
  Visit visit{.times = times,
              .flops = workload.flops(),
              .cost = source_of(workload),
              .dtype = dtype_of(workload),
              .bytes = workload.bytes(),
              .state_bytes = std::nullopt,
              .witness = slower_of(before, after),
              .disturbance = disturbance,
              .marked = {},
              .sizes = measured.sizes,
              .verified = found};
  if (request.breakdown) visit.marked = measure_parts(workload);  // when all times are taken
  if (workload.spec().mode == Mode::decode) visit.state_bytes = workload.state_bytes();
  return reply_with(visit);
}

Json memory(const Request& request) {
  const Measured measured = measured_of(request);
  Workload workload(measured.spec);
  const auto start = std::chrono::steady_clock::now();
  const MemoryFigures found = measure_memory(workload);
  const std::chrono::duration<double> measuring = std::chrono::steady_clock::now() - start;
  return reply_with(Measure::memory,
                    {.metrics = MemoryMetrics{.peak_bytes = found.peak_bytes,
                                              .weights_bytes = found.weights_bytes,
                                              .activations_bytes = found.activations_bytes,
                                              .workspace_bytes = found.workspace_bytes,
                                              .extra_bytes = found.extra_bytes,
                                              .declared_extra_bytes = found.declared_extra_bytes,
                                              .state_bytes = found.state_bytes,
                                              .rss_peak_bytes = found.rss_peak_bytes},
                     .cost = source_of(workload),
                     .dtype = dtype_of(workload),
                     .sizes = measured.sizes,
                     .verified = verified(workload, request, measuring.count())});
}

Json reach(const CellKey& key) {
  ReachFigures found = measure_reach(workload_of(key), key.axes.layers.value());
  return reply_with(key.measure,
                    {.metrics = ReachMetrics{.floor = kReachFloor,
                                             .positions = found.positions,
                                             .gradient = found.gradient,
                                             .perturbation = found.perturbation,
                                             .connected = found.connected,
                                             .by_distance = std::move(found.by_distance)}});
}

std::vector<attn_check::Result> check_variant_of(const Request& request) {
  const VariantInfo& info = variant_of(request.variant.value());
  const auto& params = request.variant->params.values();
  auto results = check_variant(info, params, attn_check::Level::quick);
  for (const PublishedShape& shape : request.shapes) {
    const AttentionShape at{.heads = shape.heads,
                            .head_dim = shape.head_dim,
                            .causal = shape.causal,
                            .dtype = shape.dtype.value_or(Dtype::float32),
                            .cache = shape.kv_dtype.value_or(CacheType::float32)};
    const auto more =
        check_variant_at(info, params, at, static_cast<int>(shape.threads), shape.kv_heads);
    results.insert(results.end(), more.begin(), more.end());
  }
  return results;
}

Json check(const Request& request) {
  const auto results = request.task
                           ? check_task(find_task(request.task->name),
                                        request.task->params.values(), attn_check::Level::quick)
                           : check_variant_of(request);
  CheckReply verdict;
  for (const attn_check::Result& result : results)
    if (result.outcome == attn_check::Outcome::failed && !verdict.red)
      verdict = {.red = result.name, .detail = result.detail};
  return reply_with(verdict);
}

// A plug-in that was built again after the sweep began would answer for the old one.
void require_same_plugins(const CellKey& key) {
  const std::string& variant = key.variant.name;
  ATTN_CHECK(
      variant_plugin(variant).empty() || key.source.variant == source_hash("variants", variant),
      "the plug-in of {} changed after the sweep began", variant);
  if (!key.task) return;
  ATTN_CHECK(task_plugin(key.task->name).empty() ||
                 key.source.task == source_hash("tasks", key.task->name),
             "the plug-in of {} changed after the sweep began", key.task->name);
}

Json measured(const Request& request) {
  const CellKey& key = request.key.value();
  require_same_plugins(key);
  switch (key.measure) {
    case Measure::speed:
      return key.axes.workload ? served_cell(request)
             : key.axes.packed ? packed_cell(request)
                               : speed(request);
    case Measure::memory:
      return memory(request);
    case Measure::fidelity:
      return reply_with(key.measure, fidelity(request));
    case Measure::accuracy:
      return reply_with(key.measure, accuracy(key));
    case Measure::reach:
      return reach(key);
  }
  throw_error("unknown measure");
}

Json dispatch(const Request& request) {
  switch (request.what) {
    case Asked::check:
      return check(request);
    case Asked::calibrate:
      return reply_with(calibrate(static_cast<int>(request.threads)));
    case Asked::pilot:
      return reply_with(pilot(request));
    case Asked::measure:
      return measured(request);
  }
  throw_error("unknown request");
}

bool is_training(const Request& request) {
  return request.what == Asked::measure && request.key.value().measure == Measure::accuracy;
}

}  // namespace

Json answer(const Request& request) {
  try {
    limit_memory(request.max_memory_bytes);
    return with_finite_figures(dispatch(request),
                               is_training(request) ? Status::diverged : Status::failed);
  } catch (const OutOfMemory& error) {
    return failed_reply(Status::oom, error.what());
  } catch (const std::bad_alloc&) {
    return failed_reply(Status::oom, "the system gave no more memory");
  } catch (const CannotRun& error) {
    Json reply = failed_reply(Status::failed, error.what());
    reply[kImpossible] = true;
    return reply;
  } catch (const WrongAnswer& error) {
    Json reply = failed_reply(Status::failed, error.what());
    reply[kWrong] = true;
    return reply;
  } catch (const std::exception& error) {
    return failed_reply(Status::failed, error.what());
  }
}

int run_cell_process() {
  count_stops();
  std::cin >> std::noskipws;
  const std::string text((std::istream_iterator<char>(std::cin)), std::istream_iterator<char>());
  Request request;
  try {
    const Parsed parsed = parse_json(text);
    ATTN_CHECK(parsed.fault.empty(), "{}", parsed.fault);
    request = request_of(parsed.value);
  } catch (const Error& error) {
    std::cerr << "attnbench cell: a request in JSON is expected on stdin: " << error.what() << "\n";
    return 2;
  }
  Json found = answer(request);
  if (stops() > 0) found[kStopped] = true;
  std::cout << found.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
  return std::cout ? 0 : 1;
}

}  // namespace attn
