// Plans: a request becomes the cells of a sweep, each with its key, its forecast or why it cannot
// run. Nothing is measured here; harness/run does that.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/cell/row.h"
#include "harness/plan/model_shape.h"

namespace attn {

struct Profile;

// What the command line and the config file say. Texts are in the sweep grammar (see grammar.h) and
// are checked by plan().
struct SweepRequest {
  std::string profile;                        // "" : none
  std::shared_ptr<const Profile> sweep_file;  // in place of a profile; null: none
  std::vector<std::string> variants, tasks;   // specs; empty: the profile's, or all variants
  std::map<std::string, std::string>
      axes;  // measure, length, batch, heads, kv_heads, head_dim, mode, scope, causal, threads,
             // seed, input, input_scale (fidelity), repetitions: values or ranges
  std::vector<ModelShape> shapes;  // layers of models whose heads and variants are measured
  int64_t tokens = 0;              // of each length, of which batch is the quotient; 0: free
  std::string block;               // "mixer,paper": what stands around a mixer; "": mixer
  std::string training;            // "steps=500,width=64": overrides of training_params
  std::string tune;                // "learning_rate=[1e-3,3e-3]": every choice is trained, and that
                                   // of the best mean validation score stands for the variant
  std::string tune_by;             // "grid", "halving" (see halving.h); "": the sweep file's, grid
  std::string test_with;           // "rounds=1;rounds=4": learned weights are scored with each, too
  std::string test_on;             // "length=[128,256]": ... and on the task with each of these
  std::string find;                // "crossing": this sweep is a step of such a search; recorded
  std::string pilots;             // file of pilot measurements behind forecasts; "": formulas alone
  std::string passed_checks;      // file of contract checks passed on this machine; "": none kept
  std::string noise;              // file of this machine's noise floors; "": none is recorded
  std::string output;             // rows file
  std::string twin;               // rows file of the cells that are twins; neither file may exist
  std::vector<std::string> argv;  // recorded
  bool force = false;             // start over instead of resuming, contract checks included
  bool resume = true;
  bool fail_fast = false;
  std::vector<std::string> held;  // rows files whose scores count as held, whichever machine's
  std::set<std::string> retry;    // rows of the file to measure again: "failed" (every failure),
                                  // a status, "noisy"
  int jobs = 0;                   // accuracy cells at a time; 0: one per core
  // Of speed cells: half the width of the interval over the median at which visits end (0: after
  // three rounds), and a bound on the time of a cell's visits (0: none). With a bound alone, visits
  // go on until as many as the rounds were not disturbed.
  double precision = 0, max_time_s = 0;
  bool breakdown = false;        // of speed cells: where the time of a pass goes too
  std::string pin = "auto";      // which processors threads of speed cells stay on, see pinning.h
  double timeout_s = 0;          // of a cell; 0: the profile's, else ten minutes
  int64_t max_memory_bytes = 0;  // of a cell; 0: what the machine has free, less a reserve
  int shard = 0, shards = 1;     // plan() keeps the cells of one of so many parts that take about
                                 // the same time, see shards.h, or of kEveryShard; speed cells
                                 // that differ only in the variant go together, and so do the
                                 // choices and seeds of a tuned cell
  std::string program =
      "/proc/self/exe";  // run as `program cell` for each cell; tests put another in its place
};

inline constexpr int kEveryShard = -1;

struct Cell {
  CellKey key;
  std::string id;     // id_of(key)
  std::string label;  // for people: what tells it from the others, see labels.h
  double forecast_s = 0;
  int64_t forecast_bytes = 0;
  bool is_piloted = false;         // the forecast was measured on this machine
  double formula_s = 0;            // the forecast without pilots, the same on every machine
  int shard = 0;                   // the part of the sweep that it is of
  std::string skip;                // reason why it cannot run; "" : it can
  std::vector<std::string> tuned;  // training settings to be chosen on validation
  bool is_halved = false;          // they are chosen by halving: this choice may not be trained
  std::optional<Trial> trial;
  std::optional<SearchEffort> search;
  bool is_twin = false;  // another cell of the plan is the same, see add_twins()
};

struct Plan {
  RunConfig config;         // the resolved sweep, recorded in the run line
  std::vector<Cell> cells;  // in the order of the file's rows when nothing is interleaved
};

double timeout_of(const SweepRequest& request);

// Resolves a request. Error (usage) names the offending value and the nearest known one; nothing is
// written.
Plan plan(const SweepRequest& request);

// Adds every cell once more, to be measured into request.twin: what two measurements of one thing
// differ by is noise. The visits of a speed cell and of its twin are in the same rounds.
void add_twins(Plan& plan);

}  // namespace attn
