// What a child process (`attnbench cell`) is asked, and what it answers.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/cell/row.h"
#include "harness/measure/breakdown.h"
#include "harness/measure/witness.h"

namespace attn {

enum class Asked { measure, check, calibrate, pilot };
enum class PilotOf { training, shortcuts };

constexpr std::array<EnumName<Asked>, 4> names_of(Asked) {
  return {{{Asked::measure, "measure"},
           {Asked::check, "check"},
           {Asked::calibrate, "calibrate"},
           {Asked::pilot, "pilot"}}};
}

constexpr std::array<EnumName<PilotOf>, 2> names_of(PilotOf) {
  return {{{PilotOf::training, "training"}, {PilotOf::shortcuts, "shortcuts"}}};
}

// What figures of a variant will be published for, so that its checks must have run with it.
struct PublishedShape {
  int64_t heads = 1, head_dim = 1, threads = 1;
  bool causal = false;
  int64_t kv_heads = 0;             // above 0: its decoding with so many heads of keys and values
  std::optional<Dtype> dtype = {};  // set where it is not float32: what is computed in it
  std::optional<CacheType> kv_dtype = {};  // set where it is not float32: its decoding with it
  auto operator<=>(const PublishedShape&) const = default;
};

struct Request {
  Asked what = Asked::measure;
  std::optional<PilotOf> of;            // of a pilot
  std::optional<CellKey> key;           // of measure and pilot
  std::optional<Plugin> variant, task;  // of check: one of the two
  std::vector<PublishedShape> shapes;   // of check, of a variant
  int64_t repetitions = 0;              // of a visit of a speed cell
  std::vector<int64_t> cpus;            // of a visit: the processors its threads stay on; or none
  bool breakdown = false;               // of a visit: where its time goes too
  int64_t draw = 0;                     // of speed and memory: which inputs, those of a visit
  int64_t batch = 0;                    // of a pilot: sequences a training step
  int64_t steps = 0;                    // of a pilot of training: its steps
  int64_t threads = 0;                  // of calibrate
  int64_t max_memory_bytes = 0;         // 0: no limit
  std::string folder;  // of the sweep, where processes leave each other captured inputs; "": none
};

// One process's part of a speed cell.
struct Visit {
  std::vector<double> times;      // seconds of each sample
  std::vector<double> later_s;    // of mode serve: of the calls after the first, round by round
  std::vector<ServedCall> calls;  // there too, where requests arrive: of other numbers of sequences
  std::vector<double> padded_s;   // of packed sequences: seconds of each sample of the padded pass
  double flops = 0;
  std::optional<CostSource> cost;
  std::optional<StoredDtype> dtype;    // nullopt: float32
  std::optional<double> bytes;         // moved, by formula; nullopt: not declared, or none applies
  std::optional<int64_t> state_bytes;  // of decoding
  std::optional<Witness> witness;      // the slower of before and after
  std::optional<Disturbance> disturbance;
  MarkedPasses marked;              // empty: not asked for
  std::optional<LayerSizes> sizes;  // where Axes::equal chose them
  std::optional<Verified> verified;
};

// Of the contract checks of a variant or a task.
struct CheckReply {
  std::optional<std::string> red;  // the check that failed first; nullopt where all passed
  std::string detail;
};

// Seconds on this machine; nullopt: not measured.
struct PilotFigures {
  std::optional<double> step_s;        // a training step
  std::optional<double> evaluation_s;  // an example of validation or test
  std::optional<double> shortcuts_s;   // the task's shortcuts, once a cell
};

// A field of an answer: true where its process was stopped and went on, so that its times say
// nothing.
inline constexpr const char* kStopped = "stopped";
// A field of a reply of status failed: true where the cell can never run, which makes it skipped.
inline constexpr const char* kImpossible = "impossible";
// A field of a reply of status failed: true where the answer that was measured is wrong.
inline constexpr const char* kWrong = "wrong";

// The answer of a child: `found` holds a Visit, CellResult, Calibration, CheckReply or
// PilotFigures, by what was asked, and is read by codec.h.
struct Reply {
  Status status = Status::ok;
  std::string reason;  // "" for ok
  bool was_stopped = false;
  Json found = nullptr;
  bool is_wrong = false;       // the answer that was measured is
  bool is_impossible = false;  // the cell can never run

  bool is_ok() const { return status == Status::ok; }
  // Of the row: a cell that can never run is skipped.
  Status row_status() const { return is_impossible ? Status::skipped : status; }
};

}  // namespace attn
