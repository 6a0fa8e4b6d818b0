// See learned.h.
#include "harness/tables/learned.h"

#include <fmt/format.h>

#include <cmath>

#include "harness/plan/labels.h"
#include "harness/plan/unlearned.h"
#include "variants/catalog.h"

namespace attn {
namespace {

bool has_reached(const Row& row) {
  if (!row.is_ok()) return false;
  const double test = row.accuracy().test, bar = bar_of(row.accuracy());
  return lower_is_better(row) ? test <= bar : test >= bar;
}

// Of the control with one set of parameters.
TaskSetting judged(const Seeds& rows, const std::string& control) {
  TaskSetting setting{
      .learned = TaskSetting::Learned::no, .control = control, .seeds = rows.size()};
  for (const Row* row : rows) setting.reached += has_reached(*row);
  if (setting.reached == setting.seeds) setting.learned = TaskSetting::Learned::yes;
  const Seeds ok = ok_ones(rows);
  setting.mean = ok.empty() ? std::nan("") : mean_test(ok);
  setting.bar = ok.empty() ? std::nan("") : bar_of(ok[0]->accuracy());
  return setting;
}

}  // namespace

double bar_of(const AccuracyMetrics& metrics) { return score_on_the_way(metrics, kBarShare); }

TaskSetting judged_setting(const Seeds& rows) {
  const Seeds ok = ok_ones(rows);
  if (ok.empty() || !ok[0]->accuracy().control.empty())
    return {.learned = TaskSetting::Learned::yes, .control = {}};
  const std::string& solver = ok[0]->accuracy().solver;
  TaskSetting best{.control = solver.empty() ? exact_reference().name : solver};
  std::map<std::string, Seeds> controls;  // by label
  for (const Row* row : rows)
    if (row->key.variant.name == best.control) controls[label_of(*row)].push_back(row);
  for (const auto& [label, seeds] : controls) {
    const TaskSetting own = judged(seeds, best.control);
    if (best.seeds == 0 || own.reached * best.seeds > best.reached * own.seeds) best = own;
  }
  return best;
}

std::string left_out_note(const std::string& task, const TaskSetting& setting) {
  if (std::isnan(setting.mean))
    return fmt::format("left out: {}: no training of {} has a score", task, setting.control);
  return fmt::format("left out: {}: {} scores {:.3f}, and reached the bar of {:.3f} in {} of {} {}",
                     task, setting.control, setting.mean, setting.bar, setting.reached,
                     setting.seeds, setting.seeds == 1 ? "seed" : "seeds");
}

std::string no_control_note(const std::string& control) {
  return fmt::format("¶: {} has no row here, so that nothing says whether this can be learned",
                     control);
}

}  // namespace attn
