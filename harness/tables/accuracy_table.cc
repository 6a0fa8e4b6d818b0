// Accuracy rows as tables: a column a task, means over seeds, chance and the best shortcut below.
#include <cmath>

#include "core/base/check.h"
#include "harness/measure/statistics.h"
#include "harness/sweep/labels.h"
#include "harness/tables/seeds.h"
#include "harness/tables/tuned.h"

namespace attn {
namespace {

// Half of the 95 % interval of the mean: Student's t over the seeds; of one seed 1.96 standard
// errors over its test examples. NaN where a row of one seed holds no standard error.
double half_interval(const Seeds& ok) {
  const double count = static_cast<double>(ok.size()), mean = mean_of(ok, "test");
  if (ok.size() == 1) {
    const Json& metrics = ok[0]->at("metrics");
    const Json error = metrics.value("test_stderr", Json(nullptr));
    return error.is_number() ? 1.96 * error.get<double>() : std::nan("");
  }
  double squares = 0;
  for (const Json* row : ok) squares += std::pow(metric(*row, "test") - mean, 2);
  return student_t_975(ok.size() - 1) * std::sqrt(squares / (count - 1) / count);
}

// "0.912 ±0.010 (+0.120)": the mean over the seeds, half of its interval, and the lift; of failures
// among them how many.
std::string show(const Seeds& all) {
  const Seeds ok = ok_ones(all);
  if (ok.empty()) return status_of(*all[0]);
  std::string text = fmt::format("{:.3f}", mean_of(ok, "test"));
  if (const double half = half_interval(ok); std::isfinite(half))
    text += fmt::format(" ±{:.3f}", half);
  const bool control = ok[0]->at("metrics").contains("control");
  text += control ? std::string(" (control)") : fmt::format(" ({:+.3f})", mean_of(ok, "lift"));
  if (ok.size() < all.size()) text += fmt::format(", {} not ok", all.size() - ok.size());
  return text;
}

// The members of `own` in which it differs from any of `others`, each written by `show`.
template <class Show>
std::string differing(const Json& own, const std::vector<Json>& others, Show shown) {
  std::string text;
  for (const auto& [name, value] : own.items())
    if (std::any_of(others.begin(), others.end(),
                    [&](const Json& other) { return other.value(name, Json()) != value; }))
      text += (text.empty() ? "" : ", ") + shown(name, text_of(value));
  return text;
}

// What tuning chose, a line a variant and task: "full, mqar: learning_rate 0.003, best of 2".
std::string choice_text(const std::string& label, const std::string& column, const Json& row,
                        size_t choices) {
  std::string text;
  for (const Json& name : row.at("tuned"))
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name.get<std::string>(),
                        text_of(row.at("training").at(name.get<std::string>())));
  return fmt::format("{}, {}: {}, best of {}", label, column, text, choices);
}

struct Group {
  std::vector<std::string> labels, columns;
  std::map<std::pair<std::string, std::string>, Seeds> cells;

  void add(const std::string& label, const std::string& column, const Json& row) {
    if (std::find(labels.begin(), labels.end(), label) == labels.end()) labels.push_back(label);
    if (std::find(columns.begin(), columns.end(), column) == columns.end())
      columns.push_back(column);
    cells[{label, column}].push_back(&row);
  }
};

// Mean over the variants' cells of one task: each scored it on its own seed's test split.
void add_references(const Group& group, Table& table) {
  std::vector<std::string> chance = {"chance"}, shortcut = {"best shortcut"};
  for (const std::string& column : group.columns) {
    double chances = 0;
    int rows = 0;
    bool error = false;
    std::map<std::string, std::pair<double, int>> scores;
    for (const auto& [place, seeds] : group.cells) {
      if (place.second != column) continue;
      for (const Json* row : ok_ones(seeds)) {
        error = lower_is_better(*row);
        chances += metric(*row, "chance");
        rows++;
        for (const auto& [name, value] : row->at("metrics").at("shortcuts").items()) {
          scores[name].first += value.get<double>();
          scores[name].second++;
        }
      }
    }
    chance.push_back(rows ? fmt::format("{:.3f}", chances / rows) : "");
    std::string best;
    double reached = 0;
    for (const auto& [name, score] : scores) {
      const double mean = score.first / score.second;
      if (!best.empty() && !(error ? mean < reached : mean > reached)) continue;
      reached = mean;
      best = name;
    }
    shortcut.push_back(best.empty() ? "" : fmt::format("{:.3f} {}", reached, best));
  }
  table.rows.push_back(std::move(chance));
  table.rows.push_back(std::move(shortcut));
}

// `all`: the rows with those that tuning did not choose.
Table table_of(const std::string& title, const Group& group, const std::vector<Json>& all) {
  Table table{
      .title = fmt::format("test score ± half its 95 % interval (lift over the best shortcut){}{}",
                           title.empty() ? "" : "; ", title),
      .columns = {"variant"},
      .rows = {},
      .notes = {}};
  for (const std::string& column : group.columns) table.columns.push_back(column);
  std::set<std::string> reasons;
  std::vector<std::string> choices;
  std::set<std::string> controls;
  bool seeds = false;
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
      for (const Json* row : found->second)
        if (status_of(*row) == "ok" && row->at("metrics").contains("control"))
          controls.insert(fmt::format("{} is a control: {} solves it; lift would say nothing",
                                      text_of(row->at("task").at("name")),
                                      text_of(row->at("metrics").at("control"))));
      for (const Json* row : found->second)
        if (status_of(*row) != "ok")
          reasons.insert(
              fmt::format("{} {}: {}", label, status_of(*row), text_of(row->at("reason"))));
      if (const Seeds ok = ok_ones(found->second); !ok.empty() && ok[0]->contains("tuned"))
        choices.push_back(choice_text(label, column, *ok[0], choices_beside(*ok[0], all)));
    }
    table.rows.push_back(std::move(line));
  }
  add_references(group, table);
  Seeds members;
  for (const auto& [place, rows] : group.cells)
    members.insert(members.end(), rows.begin(), rows.end());
  for (std::string& note : contract_notes(members)) table.notes.push_back(std::move(note));
  table.notes.insert(table.notes.end(), controls.begin(), controls.end());
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

std::string task_heading(const Json& row, const std::vector<Json>& rows) {
  const std::string column = task_label(row.at("task"));
  const auto scored = std::find_if(rows.begin(), rows.end(), [&](const Json& other) {
    return status_of(other) == "ok" && other.at("task").at("name") == row.at("task").at("name");
  });  // the row itself may have no score
  if (scored == rows.end()) return column;
  std::string name = scored->at("metrics").at("metric");
  std::replace(name.begin(), name.end(), '_', ' ');
  return name == "accuracy" ? column : column + ", " + name;
}

std::string training_text(const Json& row, const std::vector<Json>& rows,
                          const std::set<std::string>& without) {
  if (!row.contains("training")) return {};
  Json own = row.at("training");
  for (const Json& name : row.value("tuned", Json::array())) own.erase(name.get<std::string>());
  for (const std::string& name : without) own.erase(name);
  std::vector<Json> others;
  for (const Json& other : rows)
    if (other.at("task") == row.at("task") && other.contains("training"))
      others.push_back(other.at("training"));
  return differing(own, others,
                   [](const auto& name, const auto& value) { return name + " " + value; });
}

std::vector<Table> accuracy_tables(const std::vector<Json>& all) {
  std::vector<Json> rows;
  for (const Json& row : chosen_on_validation(all))
    if (row.at("measure") == "accuracy") rows.push_back(row);
  std::set<Json> threads;
  for (const Json& row : rows) threads.insert(row.at("axes").value("threads", Json()));
  std::set<std::string> hidden = {"length", "seed"};
  if (threads.size() <= 1) hidden.insert("threads");
  std::vector<std::string> order;
  std::map<std::string, Group> groups;
  for (const Json& row : rows) {
    std::string title = axes_text(row, hidden);
    if (const std::string training = training_text(row, rows); !training.empty())
      title += (title.empty() ? "" : ", ") + training;
    if (!groups.count(title)) order.push_back(title);
    groups[title].add(label_of(row), task_heading(row, rows), row);
  }
  std::vector<Table> tables;
  for (const std::string& title : order) tables.push_back(table_of(title, groups[title], all));
  for (auto& more : {length_tables(rows), decoding_tables(rows)})
    tables.insert(tables.end(), more.begin(), more.end());
  return tables;
}

}  // namespace attn
