// Rounds of a search, from rows to cells; see halving.h.
#include "harness/plan/halving.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "harness/cell/codec.h"
#include "harness/plan/forecast.h"
#include "harness/plan/labels.h"
#include "harness/plan/pilots.h"
#include "harness/plan/shards.h"
#include "harness/plan/unlearned.h"
#include "tasks/api/task.h"

namespace attn {
namespace {

using Rows = std::map<std::string, const Row*>;
using Seeded = std::vector<const Cell*>;  // the cells of a choice, a seed each

using Search = std::vector<Seeded>;  // a variant on a task: its choices, in the order given

Search search_of(const std::vector<const Cell*>& cells) {
  Search search;
  std::map<std::vector<ParamValue>, size_t> places;
  for (const Cell* cell : cells) {
    std::vector<ParamValue> values;
    for (const std::string& name : cell->tuned)
      values.push_back(cell->key.training.value().values().at(name));
    const auto [place, is_new] = places.try_emplace(values, search.size());
    if (is_new) search.emplace_back();
    search[place->second].push_back(cell);
  }
  return search;
}

// More is better: by validation, then by fewer steps, as of two that reached the target.
std::pair<double, int64_t> merit(const Row* row) {
  if (!row || !row->is_ok()) return {-std::numeric_limits<double>::infinity(), 0};
  const AccuracyMetrics& found = row->accuracy();
  return {is_error(found.metric) ? -found.validation : found.validation, -found.steps};
}

// How far validation must come from what is scored without learning, as a share of the way to a
// perfect score, for one score to say more than another.
constexpr double kBegun = 0.1;

// Of choices from the best to the worst, how many go on: the better half. Where the best has not
// begun to learn, those too that are as good: which of them is the greatest is chance. Of bits
// nobody knows a perfect score.
using Tried = std::vector<std::pair<const Seeded*, const Row*>>;
size_t kept_of(const Tried& tried) {
  const size_t half = (tried.size() + 1) / 2;
  const Row* const best = tried[0].second;
  if (!best || !best->is_ok() || best->accuracy().metric == "bits_per_token") return half;
  const AccuracyMetrics& found = best->accuracy();
  const double from = unlearned_score(found), sign = is_error(found.metric) ? -1 : 1;
  const double far = std::abs(score_on_the_way(found, kBegun) - from);
  if (sign * (found.validation - from) > far) return half;
  size_t alike = 0;
  for (const auto& [choice, row] : tried)
    alike += row && row->is_ok() && sign * (found.validation - row->accuracy().validation) <= far;
  return std::max(half, alike);
}

class Planner {
 public:
  Planner(const SweepRequest& request, const Rows* rows) : pilots_(request.pilots), rows_(rows) {}

  std::vector<Cell> cells(const std::vector<Cell>& grid) {
    std::map<std::string, std::vector<const Cell*>> units;
    for (const Cell& cell : grid)
      if (cell.is_halved) units[unit_of(cell)].push_back(&cell);
    std::set<std::string> done;
    for (const Cell& cell : grid) {
      if (!cell.is_halved)
        cells_.push_back(cell);
      else if (const std::string unit = unit_of(cell); done.insert(unit).second)
        add(search_of(units.at(unit)));
    }
    return std::move(cells_);
  }

 private:
  void add(const Search& search) {
    std::vector<const Seeded*> left;
    for (const Seeded& choice : search)
      if (choice[0]->skip.empty()) left.push_back(&choice);
    if (left.size() < 2) return add_all(left.empty() ? search[0] : *left[0], std::nullopt);
    SearchEffort effort{.choices = std::ssize(left)};
    std::set<std::string> trained;
    int64_t round = 0;
    for (const int64_t steps :
         halving_budgets(left.size(), left[0]->front()->key.training.value())) {
      Tried tried;
      bool is_known = true;
      round++;
      for (const Seeded* choice : left) {
        Cell trial = trial_of(*choice->front(), steps, {round, effort.choices});
        const Row* const row = row_of(trial.id);
        is_known = is_known && (row || !rows_);
        tried.emplace_back(choice, row);
        if (!trained.insert(trial.id).second) continue;  // budgets that are equal
        effort.trainings++;
        effort.steps += row && row->is_ok() ? row->accuracy().steps : steps;
        cells_.push_back(std::move(trial));
      }
      if (!is_known) return;
      std::vector<const Seeded*> reached;
      for (const auto& [choice, row] : tried)
        if (row && row->is_ok() && has_reached_target(row->accuracy())) reached.push_back(choice);
      if (!reached.empty()) {
        left = {reached[(reached.size() - 1) / 2]};
        break;
      }
      std::stable_sort(tried.begin(), tried.end(), [](const auto& a, const auto& b) {
        return merit(a.second) > merit(b.second);
      });
      const size_t kept = kept_of(tried);
      left.clear();
      for (size_t i = 0; i < kept; i++) left.push_back(tried[i].first);
    }
    add_all(*left[0], effort);
  }

  void add_all(const Seeded& choice, const std::optional<SearchEffort>& effort) {
    for (const Cell* cell : choice) {
      cells_.push_back(*cell);
      cells_.back().search = effort;
    }
  }

  const Row* row_of(const std::string& id) const {
    if (!rows_) return nullptr;
    const auto found = rows_->find(id);
    return found == rows_->end() ? nullptr : found->second;
  }

  // The choice is by validation: no score is taken that only a result needs.
  Cell trial_of(const Cell& full, int64_t steps, const Trial& trial) {
    Cell cell = full;
    std::map<std::string, ParamValue> training = full.key.training.value().values();
    training["steps"] = steps;
    training["stretch"] = int64_t{1};
    cell.key.training = Params::unchecked(std::move(training));
    cell.key.test_with.clear();
    cell.key.test_on.clear();
    cell.id = id_of(cell.key);
    cell.trial = trial;
    const Forecast forecast = forecast_of(cell.key, &pilots_, &costs_);
    cell.forecast_s = forecast.seconds;
    cell.formula_s = forecast.is_measured ? forecast.formula_seconds : forecast.seconds;
    cell.forecast_bytes = forecast.bytes;
    cell.is_piloted = forecast.is_measured;
    cell.label = fmt::format("{}, round {}", full.label, trial.round);
    return cell;
  }

  Pilots pilots_;
  Costs costs_;
  const Rows* const rows_;  // null: of a forecast, where the first choices go on
  std::vector<Cell> cells_;
};

}  // namespace

std::vector<int64_t> halving_budgets(size_t choices, const Params& training) {
  size_t rounds = 0;
  for (size_t left = choices; left > 1; left = (left + 1) / 2) rounds++;
  const int64_t steps = training.integer("steps");
  const int64_t most = steps / 2;
  const int64_t least =
      std::min(most, 2 * std::max(training.integer("warmup"), training.integer("eval_every")));
  std::vector<int64_t> budgets;
  for (size_t round = 0; round < rounds; round++)
    budgets.push_back(std::clamp(steps >> (rounds - round), least, most));
  return budgets;
}

std::vector<Cell> halved(const SweepRequest& request, const std::vector<Cell>& grid,
                         const Rows& rows) {
  return Planner(request, &rows).cells(grid);
}

std::vector<Cell> halved_as_forecast(const SweepRequest& request, const std::vector<Cell>& grid) {
  return Planner(request, nullptr).cells(grid);
}

}  // namespace attn
