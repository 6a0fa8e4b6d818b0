// The lines of a rows file as plain structs: the run line, and a row for each cell. codec.h turns
// them to JSON and back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/cell/key.h"
#include "harness/cell/metrics.h"
#include "harness/cell/noise_floor.h"
#include "harness/measure/calibrate.h"
#include "harness/measure/disturbance.h"
#include "harness/measure/equal.h"
#include "harness/measure/verified.h"
#include "harness/store/rows.h"

namespace attn {

// Rates of the witness (measure/witness.h), of each visit the slower of before and after.
struct Witnessed {
  std::vector<double> flops_per_s, copy_bytes_per_s;
  bool empty() const { return flops_per_s.empty(); }
};

// What was found of a cell, or why nothing was.
struct CellResult {
  Status status = Status::ok;
  std::string reason;                               // "" for ok
  Metrics metrics;                                  // monostate but for ok
  std::vector<double> times;                        // samples of a speed cell, in seconds
  std::vector<double> padded_times;                 // of the padded pass of packed sequences
  std::optional<std::vector<LearningPoint>> curve;  // of training, also of one that diverged
  std::optional<CostSource> cost;
  std::optional<StoredDtype> dtype;        // nullopt: float32
  std::vector<int64_t> visits;             // how many of `times` each visit gave
  std::vector<Noise> noisy;                // why the times of this row are unreliable
  Witnessed witness;                       // of the visits
  std::optional<Disturbance> disturbance;  // of all visits together
  std::vector<int64_t> pinned;             // the processors that the threads stayed on
  int64_t repeats = 0;                     // visits that were made again: the machine was disturbed
  std::optional<VisitsEnd> visits_ended_by;
  std::optional<int64_t> rounds;
  std::optional<uint64_t> order_seed;  // of the order of visits
  // The subject's contract checks are red, or the answer that was measured is wrong.
  bool is_gated = false;
  std::optional<LayerSizes> sizes;   // where Axes::equal chose them
  std::optional<Verified> verified;  // of speed and memory; nullopt: rows of earlier versions
};

// What the variant was given, for the parity ledger.
struct Ledger {
  std::optional<int64_t> parameters;
  std::optional<double> flops;
  std::string precision;
  std::optional<int64_t> threads;
  std::string kernel, loops;  // instruction sets of the kernels and of compiled loops
  std::optional<CostSource> cost;
};

// A short training of a search over tuned settings: chosen among, and no result.
struct Trial {
  int64_t round = 1;
  int64_t choices = 0;  // that the search began with
  bool operator==(const Trial&) const = default;
};

// What a search spent before the result's own training, for the ledger.
struct SearchEffort {
  int64_t choices = 0, trainings = 0, steps = 0;
};

struct Row {
  std::string run, cell;  // ids
  CellKey key;
  CellResult result;
  std::string started_at;  // UTC
  double duration_s = 0;
  std::vector<std::string> tuned;  // settings of training that were chosen on validation
  std::optional<Trial> trial;
  std::optional<SearchEffort> search;  // behind a choice by halving
  std::optional<Ledger> ledger;
  // Whether the variant declares its mathematics (VariantInfo::reference), which the contract
  // compares with; empty in rows of earlier versions.
  std::optional<bool> referenced;
  std::string provided_by;  // "plugin"; "": by this program
  std::string plugin;       // the hash of the plug-in's file

  bool is_ok() const { return result.status == Status::ok; }
  bool is_failure() const { return !is_ok() && result.status != Status::skipped; }
  // Error where the row is of another measure or not ok.
  const SpeedMetrics& speed() const;
  const MemoryMetrics& memory() const;
  const AccuracyMetrics& accuracy() const;
  const FidelityMetrics& fidelity() const;
  const ReachMetrics& reach() const;
};

// One measure of a sweep, as it was resolved.
struct SweepConfig {
  Measure measure = Measure::speed;
  std::vector<std::string> variants, tasks;
  std::vector<std::pair<std::string, std::vector<ParamValue>>> axes;
  std::vector<Params> training;
  std::vector<std::string> tuned;
  std::string tune_by;    // "halving"; "": by a grid
  std::string test_with;  // in the sweep grammar; "": with the parameters of training alone
  std::string test_on;    // the same of the task
  bool operator==(const SweepConfig&) const = default;
};

struct RunConfig {
  std::string profile;  // "": none
  std::optional<int64_t> profile_version;
  int64_t protocol = kProtocol;
  std::vector<SweepConfig> sweeps;
  int64_t jobs = 0;
  double timeout_s = 0;
  int64_t max_memory_bytes = 0;
  std::string shard;
  std::optional<double> precision, max_time_s;  // of speed cells, where they were asked for
  std::string pin;                              // "": threads were not pinned
  // Whether the same was asked for, whatever the limits and the shard.
  bool asks_the_same(const RunConfig& other) const;
};

struct ListedVariant {
  std::string name;
  int64_t order = 0;
  std::string family;
  // Its defaults, by which readers know exact attention as it is usually run; absent in rows of
  // earlier versions and of a stack of several variants.
  std::optional<Params> params;
};

struct RunLine {
  std::string run;  // id
  std::vector<std::string> argv;
  RunConfig config;
  Json environment;  // name -> value; the calibration stands apart
  std::optional<Calibration> calibration;
  std::string calibration_fault;  // why there is none
  std::string started_at;
  std::vector<ListedVariant> variants;
  uint64_t order_seed = 0;
  NoiseFloor noise_floor;  // of this machine, as it was known when the run began
};

}  // namespace attn
