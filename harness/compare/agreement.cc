// From rows to tasks, to a mean score for each variant on each; see agreement.h.
#include "harness/compare/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "harness/cell/codec.h"
#include "harness/plan/labels.h"
#include "harness/tables/learned.h"
#include "harness/tables/tuned.h"

namespace attn {
namespace {

constexpr const char* kBits = "bits_per_token";

// The last of each cell, in the order in which cells come first.
std::vector<Row> scored_rows(const std::vector<Row>& rows) {
  std::vector<Row> kept;
  std::map<std::string, size_t> places;
  for (const Row& row : rows) {
    if (row.key.measure != Measure::accuracy) continue;
    const auto [place, is_new] = places.try_emplace(row.cell, kept.size());
    if (is_new)
      kept.push_back(row);
    else
      kept[place->second] = row;
  }
  return chosen_on_validation(kept);
}

// What all variants of a setting have in common: the task and how they are trained.
std::string setting_of(const Row& row) {
  CellKey shared = row.key;
  shared.variant = {};
  shared.axes.seed.reset();
  shared.axes.threads.reset();
  shared.source = {};
  shared.test_with.clear();
  shared.test_on.clear();
  if (shared.training) shared.training = shared.training->without(row.tuned);
  return to_json(shared).dump();
}

// The rows of settings that their control has learned, or of which no row has the control.
Seeds learned_ones(const std::vector<Row>& rows, std::vector<std::string>& left_out) {
  std::map<std::string, Seeds> settings;
  for (const Row& row : rows) settings[setting_of(row)].push_back(&row);
  Seeds kept;
  for (const Row& row : rows) {
    const Seeds& members = settings.at(setting_of(row));
    const TaskSetting setting = judged_setting(members);
    if (setting.learned != TaskSetting::Learned::no)
      kept.push_back(&row);
    else if (members[0] == &row)
      left_out.push_back(left_out_note(task_label(row.key.task.value()), setting));
  }
  return kept;
}

// What was trained for the row and not tuned, by name.
std::map<std::string, std::string> fixed_settings(const Row& row) {
  std::map<std::string, std::string> fixed;
  if (!row.key.training) return fixed;
  const Params training = row.key.training->without(row.tuned);
  for (const auto& [name, value] : training.values()) fixed[name] = to_string(value);
  fixed["equal"] = name_of(row.key.axes.equal.value_or(Equal::width));
  return fixed;
}

// One task with the same parameters.
class OrderedTask {
 public:
  explicit OrderedTask(const Plugin& task) : label_(task_label(task)) {}

  void add(const Row* row) { by_variant_[plugin_text(row->key.variant)].push_back(row); }
  const std::string& label() const { return label_; }
  std::string metric() const {
    for (const auto& [variant, rows] : by_variant_)
      for (const Row* row : ok_ones(rows)) return row->accuracy().metric;
    return "";
  }

  // The mean score of each variant, its parameters and what else its trainings differ in, greater
  // for better. Those that were cut off are added to `cut` instead.
  std::map<std::string, double> merits(std::vector<std::string>& cut) const {
    const double sign = is_error(metric()) ? -1 : 1;
    std::map<std::string, double> merits;
    for (const auto& [variant, rows] : by_variant_)
      for (const auto& [told, seeds] : told_apart(rows)) {
        const Seeds ok = ok_ones(seeds);
        if (ok.empty()) continue;
        if (has_unfinished(ok))
          cut.push_back(fmt::format("{} on {}", label_of(*ok[0]), label_));
        else
          merits[variant + told] = sign * mean_test(ok);
      }
    return merits;
  }

 private:
  static std::map<std::string, Seeds> told_apart(const Seeds& rows) {
    std::map<std::string, std::set<std::string>> values;
    for (const Row* row : rows)
      for (const auto& [name, value] : fixed_settings(*row)) values[name].insert(value);
    std::map<std::string, Seeds> apart;
    for (const Row* row : rows) {
      std::string told;
      for (const auto& [name, value] : fixed_settings(*row))
        if (values[name].size() > 1) told += fmt::format(" {}={}", name, value);
      apart[told].push_back(row);
    }
    return apart;
  }

  std::string label_;
  std::map<std::string, Seeds> by_variant_;
};

std::vector<OrderedTask> tasks_of(const Seeds& rows) {
  std::vector<OrderedTask> tasks;
  std::map<std::string, size_t> places;
  for (const Row* row : rows) {
    const Plugin& task = row->key.task.value();
    const auto [place, is_new] = places.try_emplace(plugin_text(task), tasks.size());
    if (is_new) tasks.emplace_back(task);
    tasks[place->second].add(row);
  }
  return tasks;
}

using Merits = std::map<std::string, double>;

Agreement agreement_of(const std::pair<std::string, Merits>& task,
                       const std::pair<std::string, Merits>& other) {
  std::vector<double> own, theirs;
  for (const auto& [variant, merit] : task.second)
    if (const auto found = other.second.find(variant); found != other.second.end()) {
      own.push_back(merit);
      theirs.push_back(found->second);
    }
  Agreement made{.task = task.first, .with_task = other.first, .variants = std::ssize(own)};
  if (made.variants < 3) {
    made.reason = "fewer than 3 variants have both";
    return made;
  }
  made.tau = kendall_tau(own, theirs);
  if (!made.tau) made.reason = "all variants score alike on one of them";
  if (made.tau && made.variants >= kLeastOrdered)
    made.interval = tau_interval(*made.tau, made.variants);
  return made;
}

bool is_in_bits(const Row& row) { return row.is_ok() && row.accuracy().metric == kBits; }

}  // namespace

Agreements agreements_of(const std::vector<Row>& all) {
  const std::vector<Row> rows = scored_rows(all);
  std::set<std::string> tasks;
  for (const Row& row : rows) tasks.insert(plugin_text(row.key.task.value()));
  Agreements found;
  if (tasks.size() < 2 || std::none_of(rows.begin(), rows.end(), is_in_bits)) return found;
  std::vector<std::pair<std::string, Merits>> others, in_bits;
  std::vector<std::string> cut;
  for (const OrderedTask& task : tasks_of(learned_ones(rows, found.left_out)))
    (task.metric() == kBits ? in_bits : others).emplace_back(task.label(), task.merits(cut));
  if (!cut.empty())
    found.left_out.push_back(fmt::format("left out, cut off by their steps ({}): {}",
                                         kUnfinishedSign, fmt::join(cut, ", ")));
  for (size_t i = 0; i < in_bits.size(); i++) {
    for (const auto& task : others) found.pairs.push_back(agreement_of(task, in_bits[i]));
    for (size_t j = 0; j < i; j++) found.pairs.push_back(agreement_of(in_bits[j], in_bits[i]));
  }
  return found;
}

}  // namespace attn
