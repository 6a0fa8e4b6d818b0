// One cell measured in this process; see one_cell.h.
#include "harness/sweep/one_cell.h"

#include <sys/resource.h>

#include <cmath>
#include <iostream>
#include <iterator>
#include <new>
#include <optional>

#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "harness/check/check.h"
#include "harness/measure/calibrate.h"
#include "harness/measure/fidelity.h"
#include "harness/measure/memory.h"
#include "harness/measure/speed.h"
#include "harness/store/parse.h"
#include "harness/sweep/key.h"
#include "harness/sweep/outcome.h"
#include "harness/sweep/sweep.h"
#include "harness/sweep/training_cell.h"
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
  const rlimit limit{most, most};
  setrlimit(RLIMIT_DATA, &limit);
#endif
}

Json or_null(const std::optional<int64_t>& figure) { return figure ? Json(*figure) : Json(); }

// Whether FLOPs, bytes and states are by the variant's formulas, for the row's ledger.
const char* source_of(const Workload& workload) {
  return workload.declares_cost() ? "declared" : "measured";
}

Json speed(const Json& request) {
  Workload workload(workload_of(request["key"]));
  TimingOptions timing;
  timing.repetitions = request["repetitions"];
  Json reply = {{"samples", time_samples(workload, timing)},
                {"flops", workload.flops()},
                {"cost", source_of(workload)}};
  const WorkloadSpec& spec = workload.spec();
  if (spec.mode == Mode::decode) reply["state_bytes"] = or_null(workload.state_bytes());
  if (const std::optional<double> bytes = workload.bytes())
    reply["bytes"] = *bytes;
  else if (!workload.declares_cost())
    reply["bytes"] = nullptr;  // not declared, and nothing counts them
  return reply;
}

Json memory(const Json& key) {
  Workload workload(workload_of(key));
  const MemoryFigures found = measure_memory(workload);
  return {{"metrics",
           {{"peak_bytes", found.peak_bytes},
            {"weights_bytes", found.weights_bytes},
            {"activations_bytes", found.activations_bytes},
            {"workspace_bytes", found.workspace_bytes},
            {"extra_bytes", found.extra_bytes},
            {"declared_extra_bytes", or_null(found.declared_extra_bytes)},
            {"state_bytes", or_null(found.state_bytes)},
            {"rss_peak_bytes", found.rss_peak_bytes}}},
          {"cost", source_of(workload)},
          {"samples", nullptr}};
}

Json fidelity(const Json& key) {
  const WorkloadSpec spec = workload_of(key);
  const InputKind input = key["axes"]["input"] == "needle" ? InputKind::needle : InputKind::random;
  const FidelityFigures found = measure_fidelity(spec, input, key["axes"]["input_scale"]);
  ATTN_CHECK(std::isfinite(found.relative_error) && std::isfinite(found.cosine),
             "the output is not finite");
  const Workload workload(spec);
  return {{"metrics",
           {{"relative_error", found.relative_error},
            {"cosine", found.cosine},
            {"weights_kl", found.weights_kl ? finite_or_null(*found.weights_kl) : Json(nullptr)},
            {"flops", workload.flops()}}},
          {"cost", source_of(workload)},
          {"samples", nullptr}};
}

Json check(const Json& request) {
  const bool is_task = request.contains("task");
  const Json& subject = request[is_task ? "task" : "variant"];
  const std::string name = subject["name"];
  const auto params = params_of(subject["params"]);
  const auto results = is_task
                           ? check_task(find_task(name), params, attn_check::Level::quick)
                           : check_variant(find_variant(name), params, attn_check::Level::quick);
  for (const attn_check::Result& result : results)
    if (result.outcome == attn_check::Outcome::failed)
      return {{"red", result.name}, {"detail", result.detail}};
  return {{"red", nullptr}, {"detail", ""}};
}

Json calibration(const Json& request) {
  const Calibration found = calibrate(request["threads"]);
  return {{"calibration",
           {{"fma_flops_per_s_one", found.fma_flops_per_s_one},
            {"fma_flops_per_s_all", found.fma_flops_per_s_all},
            {"copy_bytes_per_s_one", found.copy_bytes_per_s_one},
            {"copy_bytes_per_s", found.copy_bytes_per_s},
            {"threads", found.threads}}}};
}

Json dispatch(const Json& request) {
  const std::string what = request["do"];
  if (what == "check") return check(request);
  if (what == "calibrate") return calibration(request);
  if (what == "pilot") return pilot(request);
  ATTN_CHECK(what == "measure", "unknown request '{}'", what);
  const Json& key = request["key"];
  const std::string measure = key["measure"];
  if (measure == "speed") return speed(request);
  if (measure == "memory") return memory(key);
  if (measure == "fidelity") return fidelity(key);
  ATTN_CHECK(measure == "accuracy", "unknown measure '{}'", measure);
  return accuracy(key);
}

bool is_training(const Json& request) {
  return request["do"] == "measure" && request["key"]["measure"] == "accuracy";
}

Json failure_reply(const char* status, std::string reason) {
  return {{"status", status}, {"reason", std::move(reason)}};
}

}  // namespace

Json answer(const Json& request) {
  try {
    limit_memory(request.value("max_memory_bytes", int64_t{0}));
    Json reply = dispatch(request);
    if (!reply.contains("status")) reply["status"] = "ok", reply["reason"] = nullptr;
    return with_finite_figures(std::move(reply), is_training(request) ? "diverged" : "failed");
  } catch (const OutOfMemory& error) {
    return failure_reply("oom", error.what());
  } catch (const std::bad_alloc&) {
    return failure_reply("oom", "the system gave no more memory");
  } catch (const std::exception& error) {
    return failure_reply("failed", error.what());
  }
}

int run_cell_process() {
  std::cin >> std::noskipws;
  const std::string text((std::istream_iterator<char>(std::cin)), std::istream_iterator<char>());
  const Json request = parse_json(text).value;
  if (!request.is_object()) {
    std::cerr << "attnbench cell: a request in JSON is expected on stdin\n";
    return 2;
  }
  const std::string reply = answer(request).dump(-1, ' ', false, Json::error_handler_t::replace);
  std::cout << reply << std::endl;
  return std::cout ? 0 : 1;
}

}  // namespace attn
