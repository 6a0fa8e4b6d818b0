// The parity ledger: what the rows of a table share and what they do not, so that nobody compares
// unlike things unawares. See grid.h.
#include <algorithm>
#include <cmath>
#include <compare>
#include <map>
#include <optional>

#include "core/base/check.h"
#include "harness/plan/labels.h"
#include "harness/tables/grid.h"
#include "harness/tables/tuned.h"

namespace attn {
namespace {

std::string human(double value, const char* unit) {
  const char* const steps[] = {"", "k", "M", "G", "T", "P"};
  size_t step = 0;
  while (value >= 1000 && step + 1 < std::size(steps)) value /= 1000, step++;
  return fmt::format("{:.3g} {}{}", value, steps[step], unit);
}

// "1.2 k", or "1.2 k to 3.4 M" where the rows differ.
struct Range {
  double low = INFINITY, high = -INFINITY;
  void add(std::optional<double> value) {
    if (!value) return;
    low = std::min(low, *value);
    high = std::max(high, *value);
  }
  bool is_empty() const { return low > high; }
  template <class Format>
  std::string text(const Format& format) const {
    if (is_empty()) return "";
    return low == high ? format(low) : format(low) + " to " + format(high);
  }
  std::string text(const char* unit) const {
    return text([&](double value) { return human(value, unit); });
  }
  std::string whole() const {
    return text([](double value) { return fmt::format("{:.0f}", value); });
  }
};

struct Entry {
  Range parameters, flops;
  bool counted = false;  // FLOPs of a variant that declares none
  Range width, hidden;   // that were chosen to make layers equal
  std::set<std::string> precision, threads, kernels, chosen;
};

std::string parameters_text(const Entry& entry) {
  const std::string text = entry.parameters.text("");
  if (entry.width.is_empty()) return text;
  return fmt::format("{} (width {}, feed_forward {})", text, entry.width.whole(),
                     entry.hidden.whole());
}

std::string flops_text(const Entry& entry) {
  const std::string text = entry.flops.text("FLOP");
  return entry.counted && !text.empty() ? text + " measured" : text;
}

// What "FLOPs" counts in a row of this measure.
std::string pass_of(Measure measure) {
  if (measure == Measure::accuracy) return "training, an example";
  return std::string(name_of(measure)) + ", a pass";
}

// The rows of one measure, and how many of them have a value of an axis.
struct Like {
  std::vector<Row> rows;
  std::map<std::pair<std::string, ParamValue>, size_t> counts;
  void add(const Row& row) {
    rows.push_back(row);
    for (const auto& axis : named_values(row.key.axes)) counts[axis]++;
  }
};

// What tells a row's table from others of its measure, whose rows are `like`, but for lengths, over
// which figures range.
std::string setting_of(const Row& row, const Like& like) {
  static const std::set<std::string> ranges = {"length", "seed", "repetitions", "input",
                                               "input_scale"};
  std::string text = row.key.task ? task_label(*row.key.task) : "";
  const auto add = [&](const std::string& words) {
    if (!words.empty()) text += (text.empty() ? "" : ", ") + words;
  };
  for (const auto& axis : named_values(row.key.axes)) {
    const auto& [name, own] = axis;
    const bool differs = like.counts.at(axis) < like.rows.size();
    if (name == "equal")
      add("equal " + to_string(own));
    else if (differs && !ranges.count(name))
      add(std::holds_alternative<std::string>(own) ? to_string(own)
                                                   : fmt::format("{} {}", name, to_string(own)));
  }
  if (row.key.task) add(training_text(row, like.rows));
  return text;
}

// "best of 6, by 11 trainings of 9000 steps in all before it"; "" where nothing was tuned.
std::string chosen_text(const Row& row, const std::vector<Row>& rows) {
  if (row.tuned.empty()) return "";
  const std::string best = fmt::format("best of {}", choices_beside(row, rows));
  if (!row.search) return best;
  return fmt::format("{}, by {} trainings of {} steps in all", best, row.search->trainings,
                     row.search->steps);
}

}  // namespace

std::vector<Table> ledger_tables(const std::vector<Row>& rows) {
  struct Place {
    Measure measure;
    std::string setting, variant;
    auto operator<=>(const Place&) const = default;
  };
  std::vector<Place> order;
  std::map<Place, Entry> entries;
  std::map<Measure, Like> by_measure;
  for (const Row& row : rows)
    if (!row.trial) by_measure[row.key.measure].add(row);
  bool has_choice = false;
  for (const Row& row : rows) {
    if (!row.is_ok() || !row.ledger || row.trial) continue;
    const Ledger& ledger = *row.ledger;
    const Measure measure = row.key.measure;
    const Place place = {measure, setting_of(row, by_measure[measure]), label_of(row)};
    if (!entries.count(place)) order.push_back(place);
    Entry& entry = entries[place];
    entry.parameters.add(ledger.parameters);
    entry.flops.add(ledger.flops);
    if (const auto& sizes = row.result.sizes)
      entry.width.add(sizes->width), entry.hidden.add(sizes->feed_forward);
    entry.counted = entry.counted || ledger.cost == CostSource::measured;
    entry.precision.insert(ledger.precision);
    entry.threads.insert(ledger.threads ? std::to_string(*ledger.threads) : "unknown");
    const bool is_same = ledger.loops.empty() || ledger.loops == ledger.kernel;
    entry.kernels.insert(is_same ? ledger.kernel
                                 : fmt::format("{} (rest: {})", ledger.kernel, ledger.loops));
    if (const std::string chosen = chosen_text(row, rows); !chosen.empty())
      entry.chosen.insert(chosen), has_choice = true;
  }
  if (order.empty()) return {};
  Table table{.title = "parity ledger: what the variants were given",
              .columns = {"measure", "of", "variant", "parameters", "FLOPs of", "FLOPs",
                          "precision", "threads", "kernel"},
              .rows = {},
              .notes = {}};
  const bool one_setting = std::all_of(order.begin(), order.end(),
                                       [](const Place& place) { return place.setting.empty(); });
  for (const Place& place : order) {
    const Entry& entry = entries[place];
    table.rows.push_back({name_of(place.measure), place.setting, place.variant,
                          parameters_text(entry), pass_of(place.measure), flops_text(entry),
                          joined(entry.precision), joined(entry.threads), joined(entry.kernels)});
    if (one_setting) table.rows.back().erase(table.rows.back().begin() + 1);
  }
  if (one_setting) table.columns.erase(table.columns.begin() + 1);
  if (has_choice) {
    table.columns.emplace_back("tuned");
    for (size_t i = 0; i < order.size(); i++)
      table.rows[i].push_back(joined(entries[order[i]].chosen));
  }
  return {table};
}

}  // namespace attn
