// Steps of a search; see find.h. Decisions follow from the rows alone, so the same command goes on
// with the file of a search that was ended.
#include "harness/cli/find.h"

#include <algorithm>

#include "core/base/check.h"
#include "harness/plan/grammar.h"
#include "harness/plan/labels.h"
#include "harness/plan/profiles.h"
#include "harness/run/run.h"

namespace attn::cli {
namespace {

constexpr const char* kDefaultLengths = "64,16384";
constexpr int64_t kFewestRepetitions = 3;  // a visit each: the fewest whose scatter says something

// The same sweep of exact attention's kernels.
SweepRequest of_rivals(SweepRequest request) {
  request.variants = {rivals_spec()};
  return request;
}

std::vector<CellKey> keys_of(const Plan& plan) {
  std::vector<CellKey> keys;
  for (const Cell& cell : plan.cells) keys.push_back(cell.key);
  return keys;
}

// Before a default length is added, which training would refuse in words about lengths.
void require_no_training(const SweepRequest& request) {
  std::string asked = request.tasks.empty() ? "" : "accuracy";
  if (const auto measures = request.axes.find("measure"); measures != request.axes.end())
    for (const std::string& measure : expand_values("axis measure", measures->second))
      if (measure == name_of(Measure::accuracy)) asked = measure;
  ATTN_CHECK(asked.empty(),
             "--find crossing is about speed and memory, not {}; say --measure "
             "speed,memory, without -t",
             asked);
}

void require_crossing(const Plan& plan) {
  for (const Cell& cell : plan.cells) {
    const Measure measure = cell.key.measure;
    ATTN_CHECK(measure == Measure::speed || measure == Measure::memory,
               "--find crossing is about speed and memory, and this sweep has {} cells; say "
               "--measure speed,memory",
               name_of(measure));
    const int64_t repetitions = cell.key.axes.repetitions.value_or(kFewestRepetitions);
    ATTN_CHECK(repetitions >= kFewestRepetitions,
               "--repetitions {} is too few for --find crossing, whose intervals need {} visits",
               repetitions, kFewestRepetitions);
  }
}

// A search measures lengths of its own between the first and the last: those alone are recorded.
RunConfig config_of_range(RunConfig config) {
  for (SweepConfig& sweep : config.sweeps)
    for (auto& [name, values] : sweep.axes)
      if (name == "length") {
        const auto [low, high] = std::minmax_element(values.begin(), values.end());
        values = low == high ? std::vector{*low} : std::vector{*low, *high};
      }
  return config;
}

}  // namespace

void check_find_options(const Arguments& arguments, const SweepRequest& request) {
  arguments.one_of("find", {"crossing"});
  ATTN_CHECK(!arguments.has("shard"),
             "--shard {} does not go with --find crossing: each step is decided from the rows of "
             "all cells; divide the variants or modes instead",
             arguments.get("shard"));
  ATTN_CHECK(!arguments.has("ledger"),
             "--ledger does not go with --find crossing, whose tables are of crossings; print the "
             "ledger by attnbench table ROWS --ledger");
  ATTN_CHECK(request.tokens == 0,
             "--tokens {} does not go with --find crossing, which chooses lengths; give --batch",
             request.tokens);
  ATTN_CHECK(request.output != kStdoutPath,
             "--output - does not go with --find crossing, which goes on from the rows; name a "
             "file");
}

CrossingSearch::CrossingSearch(const SweepRequest& request) : request_(request) {
  require_no_training(request_);
  if (!asked_profile(request_) && !request_.axes.count("length"))
    request_.axes["length"] = kDefaultLengths;
  const Plan asked = plan(request_);
  require_crossing(asked);
  config_ = config_of_range(asked.config);
  contests_ = contests_of(keys_of(asked), keys_of(plan(of_rivals(request_))));
  std::erase_if(contests_, [](const Contest& contest) { return contest.low == contest.high; });
  ATTN_CHECK(asked.cells.empty() || !contests_.empty(),
             "--find crossing needs two lengths, the ends of a range, and this sweep has one; say "
             "--length {}",
             kDefaultLengths);
  standings_ = standings(contests_, {});
  if (!asked.cells.empty()) plan_step();
}

size_t CrossingSearch::most_cells() const {
  size_t most = step_.cells.size();
  for (const Contest& contest : contests_)
    most += 2 * (kMostLengths - first_lengths(contest.low, contest.high).size());
  return most;
}

std::vector<Cell> CrossingSearch::cells_of(const Lengths& wanted) {
  SweepRequest request = request_;
  std::string& lengths = request.axes["length"];
  lengths.clear();
  for (const auto& [length, contests] : wanted)
    lengths += (lengths.empty() ? "" : ",") + std::to_string(length);
  std::vector<Cell> cells;
  std::map<std::pair<size_t, int64_t>, std::set<std::string>> offered;
  for (const Plan& part : {plan(request), plan(of_rivals(request))})
    for (const Cell& cell : part.cells) {
      const int64_t length = cell.key.axes.length.value();
      bool is_wanted = false;
      for (const size_t contest : wanted.at(length)) {
        if (!is_of(contests_[contest], cell.key)) continue;
        offered[{contest, length}].insert(cell.id);
        is_wanted = true;
      }
      if (is_wanted && known_.insert(cell.id).second) cells.push_back(cell);
    }
  for (const auto& [length, contests] : wanted)
    for (const size_t contest : contests)
      if (offered[{contest, length}].size() < 2) contests_[contest].absent.insert(length);
  return cells;
}

void CrossingSearch::plan_step() {
  step_ = {};
  step_.config = config_;
  for (bool has_more = true; has_more && step_.cells.empty();) {
    Lengths wanted;
    for (size_t i = 0; i < contests_.size(); i++)
      for (const int64_t length : standings_[i].state.next) wanted[length].insert(i);
    has_more = !wanted.empty();
    if (!has_more) return;
    step_.cells = cells_of(wanted);
    // Where all that is wanted was measured for other contests, or is left out, the next question.
    if (step_.cells.empty()) standings_ = standings(contests_, result_.rows);
  }
  std::vector<std::string> labels = cell_labels(step_.cells);
  for (size_t i = 0; i < labels.size(); i++) step_.cells[i].label = std::move(labels[i]);
}

void CrossingSearch::take_step(const std::function<void(const Progress&)>& report) {
  SweepResult part = run_sweep(request_, step_, report);
  request_.force = false;  // the rows of the first step stay
  request_.resume = true;
  number_++;
  bool has_failed = false;
  for (Row& row : part.rows) {
    has_failed = has_failed || row.is_failure();
    result_.rows.push_back(std::move(row));
  }
  result_.run = part.run;
  result_.reused += part.reused;
  result_.signal = part.signal;
  result_.gate_failed = result_.gate_failed || part.gate_failed;
  standings_ = standings(contests_, result_.rows);
  const bool is_over = part.signal != 0 || (has_failed && request_.fail_fast);
  if (is_over)
    step_ = {};
  else
    plan_step();
}

}  // namespace attn::cli
