// Rows that keep the schema, for the tests of the store to break one field at a time.
#pragma once

#include "harness/store/rows.h"
#include "harness/tables/table.h"

namespace attn {

inline Json sample_run() {
  return Json::parse(
      R"({"schema": "attnbench/1", "kind": "run", "run": "r1", "argv": ["attnbench", "run"], "config": {},
    "protocol": {"name": "attnbench-1", "hash": "0123456789abcdef", "departs": ["training.steps"]},
    "environment": {"version": "0.1.0", "commit": null, "dirty": false, "compiler": "GNU 12.2.0", "flags": "-O3",
      "build_type": "Release", "libraries": "Eigen 3.4.0", "instruction_set": "avx2", "cpu_model": "a", "caches": "L3 32 MiB",
      "cores": 2, "memory_bytes": 8000000000, "kernel": "Linux 6", "governor": null, "load_before": 0.5, "threads": 2,
      "benchmark_library_build": "debug",
      "calibration": {"fma_flops_per_s_one": 1e11, "fma_flops_per_s_all": 2e11, "copy_bytes_per_s": 3e10, "threads": 2}}})");
}

// `status` other than ok: without metrics and samples, with a reason.
inline Json sample_cell(const std::string& measure, const std::string& status = "ok") {
  Json cell = Json::parse(
      R"({"schema": "attnbench/1", "kind": "cell", "run": "r1", "cell": "0123456789abcdef",
    "status": "ok", "reason": null, "measure": "speed", "variant": {"name": "linformer", "params": {"rank": 64}}, "task": null,
    "axes": {"length": 512, "batch": 1, "heads": 4, "head_dim": 64, "mode": "forward", "scope": "attention",
      "causal": false, "threads": 1, "seed": 0, "input": "random", "input_scale": 1.0},
    "metrics": null, "samples": null, "started_at": "2026-11-20T12:00:00Z", "duration_s": 0.5})");
  cell["measure"] = measure;
  cell["status"] = status;
  if (measure == "accuracy") {
    cell["task"] = Json::parse(R"({"name": "mqar", "params": {"pairs": 8}})");
    cell["axes"] = Json::parse(R"({"seed": 0})");
  }
  if (measure == "reach")
    cell["axes"] = Json::parse(
        R"({"length": 3, "heads": 1, "head_dim": 8, "causal": true, "threads": 1, "seed": 0, "layers": 2})");
  if (status != "ok") {
    cell["reason"] = "because";
    return cell;
  }
  if (measure == "speed") {
    cell["metrics"] = Json::parse(
        R"({"time_s": {"median": 0.5, "mean": 0.5, "min": 0.4, "mad": 0.0, "ci_low": 0.4,
      "ci_high": 0.6, "n": 2}, "tokens_per_s": 1024.0, "flops": 1e9, "flops_per_s": 2e9, "peak_fraction": 0.02})");
    cell["samples"] = {0.4, 0.6};
  } else if (measure == "memory") {
    cell["metrics"] =
        Json::parse(R"({"peak_bytes": 4096, "weights_bytes": 0, "activations_bytes": 4096,
      "workspace_bytes": 0, "state_bytes": 64, "rss_peak_bytes": 10000000})");
  } else if (measure == "accuracy") {
    cell["metrics"] =
        Json::parse(R"({"metric": "accuracy", "test": 0.9, "validation": 0.91, "chance": 0.01,
      "shortcuts": {"majority": 0.02}, "lift": 45.0, "by_distance": [{"from": 0, "to": 7, "labels": 12, "accuracy": 0.5, "stderr": 0.1}],
      "slices": {"hops": [{"from": 1, "to": 1, "labels": 7, "examples": 7, "test": 0.9, "stderr": 0.1},
        {"from": 2, "to": 3.5, "labels": 5, "examples": 4, "test": 0.5, "stderr": 0.1}]},
      "by_length": [{"factor": 1, "length": 64, "test": 0.9, "stderr": 0.01, "chance": 0.01, "reason": null},
        {"factor": 2, "length": 128, "test": null, "stderr": null, "chance": null, "reason": "learned positions end at 64"}],
      "by_params": [{"params": {"rounds": 2}, "test": 0.8, "stderr": 0.01, "reason": null},
        {"params": {"rounds": 4}, "test": null, "stderr": null, "reason": "its weight gain is [3] there, [4] in training"}],
      "by_task": [{"params": {"length": 128}, "length": 128, "test": 0.7, "stderr": 0.01, "chance": 0.01, "reason": null},
        {"params": {"length": 256}, "length": 256, "test": null, "stderr": null, "chance": null, "reason": "learned positions end at 64"}],
      "state_bytes": 4096, "token_accuracy": 0.95, "places": ["encoder", "cross"],
      "decoding": {"sequences": 8, "tokens": 99, "tokens_per_s": 900.0, "recompute_tokens_per_s": 90.0, "speedup": 10.0, "same": 1.0},
      "steps": 100, "examples": 3200, "train_s": 2.0, "data_wait_share": 0.01,
      "examples_per_s": 1600.0, "parameters": 12345})");
    cell["samples"] =
        Json::parse(R"([{"step": 50, "train_loss": 1.5, "validation": 0.5, "seconds": 1.0}])");
  } else if (measure == "reach") {
    cell["metrics"] = Json::parse(R"({"floor": 1e-6, "positions": 3,
      "gradient": {"past": 2, "future": 0}, "perturbation": {"past": 2, "future": 0}, "connected": {"past": 2, "future": 0},
      "by_distance": [{"distance": -2, "gradient": 0.0, "perturbation": 0.0}, {"distance": 2, "gradient": 0.1, "perturbation": 0.2}]})");
  } else {
    cell["metrics"] = Json::parse(R"({"relative_error": 0.1, "cosine": 0.99, "weights_kl": null})");
  }
  return cell;
}

// A row of speed as the tests of tables need it: 4 heads of 64, attention alone, one thread.

inline Row speed_row_of(const Plugin& variant, int64_t length, const SpeedMetrics& metrics,
                        Mode mode = Mode::forward) {
  Row row;
  row.key.measure = Measure::speed;
  row.key.variant = variant;
  row.key.axes = {.length = length,
                  .batch = 1,
                  .heads = 4,
                  .head_dim = 64,
                  .mode = mode,
                  .scope = ScopeKind::attention,
                  .causal = false,
                  .threads = 1,
                  .seed = 0};
  row.result.metrics = metrics;
  return row;
}

}  // namespace attn
