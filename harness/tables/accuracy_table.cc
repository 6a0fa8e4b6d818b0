// Accuracy rows as tables: a column a task, means over seeds, chance and the best shortcut below.
#include <cmath>

#include "core/base/check.h"
#include "harness/plan/labels.h"
#include "harness/tables/learned.h"
#include "harness/tables/tuned.h"

namespace attn {
namespace {

// "0.912 ±0.010 (+0.120)": the mean over the seeds, half of its interval, and the lift; of failures
// among them how many.
std::string show(const Seeds& all) {
  const Seeds ok = ok_ones(all);
  if (ok.empty()) return status_of(*all[0]);
  const bool is_control = !ok[0]->accuracy().control.empty();
  return mean_text(ok) +
         (is_control ? std::string(" (control)") : fmt::format(" ({:+.3f})", mean_lift(ok))) +
         failures_text(all, ok);
}

// What tuning chose, a line a variant and task: "full, mqar: learning_rate 0.003, best of 2".
std::string choice_text(const std::string& label, const std::string& column, const Row& row,
                        size_t choices) {
  std::string text;
  for (const std::string& name : row.tuned)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name,
                        to_string(row.key.training.value().values().at(name)));
  return fmt::format("{}, {}: {}, best of {}", label, column, text, choices);
}

struct Group {
  std::vector<std::string> labels, columns;
  std::map<std::string, std::string> signs;  // of columns
  SeedsByPlace cells;

  void add(const std::string& label, const std::string& column, const Row& row) {
    if (std::find(labels.begin(), labels.end(), label) == labels.end()) labels.push_back(label);
    if (std::find(columns.begin(), columns.end(), column) == columns.end())
      columns.push_back(column);
    cells[{label, column}].push_back(&row);
  }
};

// Mean over the variants' cells of one task: each scored it on its own seed's test split, where the
// best shortcut, from which the lift is counted, may be another.
void add_references(const Group& group, Table& table) {
  std::vector<std::string> chance = {"chance"}, shortcut = {"best shortcut"};
  for (const std::string& column : group.columns) {
    double chances = 0;
    int rows = 0;
    std::map<std::string, int> named;  // how many seeds have it as their best
    double sum = 0;
    for (const auto& [place, seeds] : group.cells) {
      if (place.second != column) continue;
      for (const Row* row : ok_ones(seeds)) {
        chances += row->accuracy().chance;
        rows++;
        const auto* const best = best_shortcut(row->accuracy(), lower_is_better(*row));
        if (!best) continue;
        sum += best->second;
        named[best->first]++;
      }
    }
    chance.push_back(rows ? fmt::format("{:.3f}", chances / rows) : "");
    int count = 0;
    std::string most;
    for (const auto& [name, times] : named) {
      count += times;
      if (most.empty() || times > named[most]) most = name;
    }
    shortcut.push_back(count == 0 ? "" : fmt::format("{:.3f} {}", sum / count, most));
  }
  table.rows.push_back(std::move(chance));
  table.rows.push_back(std::move(shortcut));
}

// The steps that a training was given; "" where the row does not say or tuning chose them.
std::string steps_of(const Row& row) {
  if (!row.key.training || std::count(row.tuned.begin(), row.tuned.end(), "steps")) return {};
  const auto& values = row.key.training->values();
  const auto found = values.find("steps");
  return found == values.end() ? "" : to_string(found->second);
}

// "steps 200"; "steps 200 to 3000" where tasks are trained for different times.
std::string steps_text(const Group& group) {
  std::set<int64_t> steps;
  for (const auto& [place, seeds] : group.cells)
    for (const Row* row : seeds)
      if (const std::string own = steps_of(*row); !own.empty()) steps.insert(std::stoll(own));
  if (steps.empty()) return {};
  return fmt::format("steps {}{}", *steps.begin(),
                     steps.size() > 1 ? fmt::format(" to {}", *steps.rbegin()) : "");
}

// What may make the control learn.
std::string advice(const Seeds& rows) {
  const bool was_cut = std::any_of(rows.begin(), rows.end(), [](const Row* row) {
    return row->is_ok() &&
           (row->accuracy().stopped_by == "steps" || is_unfinished(row->accuracy()));
  });
  const std::string steps = steps_of(*rows[0]);
  return was_cut && !steps.empty()
             ? fmt::format("; try --train schedule=wsd, or steps=N, N above {}", steps)
             : "; try --tune learning_rate --tune-by halving";
}

// Takes the columns out that the control has not learned, with what to try; marks those whose
// control is missing. The rows of what is left out lose their place in `rows`.
std::vector<std::string> leave_out(Group& group, std::set<const Row*>& unlearned) {
  std::vector<std::string> notes, kept;
  std::set<std::string> without;  // controls that have no row
  for (const std::string& column : group.columns) {
    const Seeds members = members_of(group.cells, column);
    const TaskSetting setting = judged_setting(members);
    if (setting.learned == TaskSetting::Learned::no) {
      notes.push_back(left_out_note(column, setting) + advice(members));
      unlearned.insert(members.begin(), members.end());
      continue;
    }
    kept.push_back(column);
    if (setting.learned == TaskSetting::Learned::yes) continue;
    without.insert(setting.control);
    group.signs[column] = kNoControlSign;
  }
  for (const std::string& control : without) notes.push_back(no_control_note(control));
  group.columns = kept;
  return notes;
}

// `all`: the rows with those that tuning did not choose.
Table table_of(const std::string& title, Group group, const std::vector<Row>& all,
               std::set<const Row*>& unlearned) {
  const std::vector<std::string> left_out = leave_out(group, unlearned);
  Table table{
      .title = fmt::format("test score ± half its 95 % interval (lift over the best shortcut){}{}",
                           title.empty() ? "" : "; ", title),
      .columns = {"variant"},
      .rows = {},
      .notes = {}};
  for (const std::string& column : group.columns)
    table.columns.push_back(column + group.signs[column]);
  std::set<std::string> reasons;
  std::vector<std::string> choices;
  std::set<std::string> controls;
  bool seeds = false, unfinished = false;
  for (const std::string& label : group.labels) {
    std::vector<std::string> line = {label};
    for (const std::string& column : group.columns) {
      const auto found = group.cells.find({label, column});
      if (found == group.cells.end()) {
        line.emplace_back();
        continue;
      }
      line.push_back(show(found->second));
      seeds = seeds || found->second.size() > 1;
      unfinished = unfinished || has_unfinished(ok_ones(found->second));
      for (const Row* row : found->second) {
        if (!row->is_ok())
          reasons.insert(fmt::format("{} {}: {}", label, status_of(*row), row->result.reason));
        else if (const std::string& control = row->accuracy().control; !control.empty())
          controls.insert(fmt::format("{} is a control: {} solves it; lift would say nothing",
                                      row->key.task->name, control));
      }
      if (const Seeds ok = ok_ones(found->second); !ok.empty() && !ok[0]->tuned.empty())
        choices.push_back(choice_text(label, column, *ok[0], choices_beside(*ok[0], all)));
    }
    table.rows.push_back(std::move(line));
  }
  if (group.columns.empty())
    table.rows.clear();  // the notes say why
  else
    add_references(group, table);
  Seeds members;
  for (const auto& [place, rows] : group.cells)
    members.insert(members.end(), rows.begin(), rows.end());
  for (std::string& note : contract_notes(members)) table.notes.push_back(std::move(note));
  table.notes.insert(table.notes.end(), controls.begin(), controls.end());
  table.notes.insert(table.notes.end(), left_out.begin(), left_out.end());
  if (unfinished) table.notes.emplace_back(kUnfinishedNote);
  table.notes.push_back(
      seeds ? "±: 95 % interval of the mean over seeds (Student's t); of one seed, over its test "
              "examples"
            : "±: 95 % interval over the test examples; another seed may differ by more");
  table.notes.insert(table.notes.end(), reasons.begin(), reasons.end());
  if (!choices.empty()) table.notes.push_back("chosen on validation:");
  table.notes.insert(table.notes.end(), choices.begin(), choices.end());
  return table;
}

}  // namespace

std::string task_heading(const Row& row, const std::vector<Row>& rows) {
  const std::string column = task_label(row.key.task.value());
  const auto scored = std::find_if(rows.begin(), rows.end(), [&](const Row& other) {
    return other.is_ok() && other.key.task->name == row.key.task->name;
  });  // the row itself may have no score
  if (scored == rows.end()) return column;
  std::string name = scored->accuracy().metric;
  std::replace(name.begin(), name.end(), '_', ' ');
  return name == "accuracy" ? column : column + ", " + name;
}

std::string training_text(const Row& row, const std::vector<Row>& rows,
                          const std::vector<std::string>& without) {
  if (!row.key.training) return {};
  const Params own = row.key.training->without(row.tuned).without(without);
  std::string text;
  for (const auto& setting : own.values()) {
    const bool differs = std::any_of(rows.begin(), rows.end(), [&](const Row& other) {
      if (other.key.task != row.key.task || !other.key.training) return false;
      const auto& values = other.key.training->values();
      const auto found = values.find(setting.first);
      return found == values.end() || found->second != setting.second;
    });
    if (differs)
      text += (text.empty() ? "" : ", ") + setting.first + " " + to_string(setting.second);
  }
  return text;
}

std::vector<Table> accuracy_tables(const std::vector<Row>& all) {
  std::vector<Row> rows;
  for (const Row& row : chosen_on_validation(all))
    if (row.key.measure == Measure::accuracy) rows.push_back(row);
  std::set<std::optional<int64_t>> threads;
  for (const Row& row : rows) threads.insert(row.key.axes.threads);
  std::set<std::string> hidden = {"length", "seed"};
  if (threads.size() <= 1) hidden.insert("threads");
  std::vector<std::string> order;
  std::map<std::string, Group> groups;
  for (const Row& row : rows) {
    std::string title = axes_text(row, hidden);
    if (const std::string training = training_text(row, rows); !training.empty())
      title += (title.empty() ? "" : ", ") + training;
    if (!groups.count(title)) order.push_back(title);
    groups[title].add(label_of(row), task_heading(row, rows), row);
  }
  std::vector<Table> tables;
  std::set<const Row*> unlearned;
  for (const std::string& title : order) {
    const std::string steps =
        title.find("steps ") == std::string::npos ? steps_text(groups[title]) : std::string();
    const bool both = !title.empty() && !steps.empty();
    tables.push_back(table_of(title + (both ? ", " : "") + steps, groups[title], all, unlearned));
  }
  std::vector<Row> learned;
  for (const Row& row : rows)
    if (!unlearned.contains(&row)) learned.push_back(row);
  for (auto& more : {length_tables(learned), params_tables(learned), task_tables(learned),
                     decoding_tables(learned)})
    tables.insert(tables.end(), more.begin(), more.end());
  return tables;
}

}  // namespace attn
