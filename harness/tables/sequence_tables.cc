// Accuracy rows by test length and by parameters at test time, and the decoding of output
// sequences, as tables.
#include <cmath>

#include "core/base/check.h"
#include "harness/plan/labels.h"
#include "harness/tables/grid.h"

namespace attn {
namespace {

// One line a variant, positions, other settings that rows of one task differ in, and seed.
std::string label(const Row& row, const std::vector<Row>& rows) {
  std::string text = label_of(row);
  if (row.key.training) text += ", positions " + row.key.training->text("positions");
  const std::string settings = training_text(row, rows, {"positions"});
  if (!settings.empty()) text += ", " + settings;
  if (row.key.axes.equal) text += fmt::format(", equal {}", name_of(*row.key.axes.equal));
  return fmt::format("{}, seed {}", text, row.key.axes.seed.value());
}

// "0.812", with the sign of a training that was cut off.
std::string shown_score(double test, const Row& row) {
  return fmt::format("{:.3f}{}", test, is_unfinished(row.accuracy()) ? kUnfinishedSign : "");
}

void add_line(const Row& row, const std::string& label, Table& table) {
  std::vector<std::string> line = {label};
  std::set<std::string> reasons;
  for (const ScoreAtLength& at : row.accuracy().by_length) {
    line.push_back(at.test ? shown_score(*at.test, row) : "skipped");
    if (!at.test) reasons.insert(at.reason);
  }
  table.rows.push_back(std::move(line));
  for (const std::string& reason : reasons)
    table.notes.push_back(fmt::format("{} skipped: {}", label, reason));
}

std::vector<std::string> heads(const Row& row) {
  std::vector<std::string> all = {"variant"};
  for (const ScoreAtLength& at : row.accuracy().by_length)
    all.push_back(fmt::format("{} (x{})", at.length, at.factor));
  return all;
}

// "cross, decoder": where `full` stands instead of the variant.
std::string replaced(const Row& row) {
  std::string text;
  for (const char* place : {"encoder", "decoder", "cross"}) {
    const std::vector<std::string>& places = row.accuracy().places;
    if (std::find(places.begin(), places.end(), place) == places.end())
      text += (text.empty() ? "" : ", ") + std::string(place);
  }
  return text;
}

}  // namespace

std::vector<Table> length_tables(const std::vector<Row>& rows) {
  std::vector<Table> tables;
  std::map<std::vector<std::string>, size_t> by_title;
  for (const Row& row : rows) {
    if (!row.is_ok() || row.accuracy().by_length.empty()) continue;
    const std::string title = "test score by length; " + task_heading(row, rows);
    std::vector<std::string> key = heads(row);
    key.push_back(title);
    const auto [found, added] = by_title.emplace(key, tables.size());
    if (added) tables.push_back({.title = title, .columns = heads(row), .rows = {}, .notes = {}});
    add_line(row, label(row, rows), tables[found->second]);
  }
  return tables;
}

// A line for each of the further scores of a row's learned weights, and a table a task. `scores_of`
// gives those scores, and `named` the text of one.
template <class ScoresOf, class Named>
std::vector<Table> elsewhere_tables(const std::vector<Row>& rows, const std::string& heading,
                                    const std::string& column, ScoresOf scores_of, Named named) {
  std::vector<Table> tables;
  std::map<std::string, size_t> by_title;
  for (const Row& row : rows) {
    if (!row.is_ok() || scores_of(row).empty()) continue;
    const std::string title = heading + "; " + task_heading(row, rows);
    const auto [found, added] = by_title.emplace(title, tables.size());
    if (added)
      tables.push_back({.title = title,
                        .columns = {"variant", column, "test", "as trained"},
                        .rows = {},
                        .notes = {}});
    Table& table = tables[found->second];
    const std::string trained = label(row, rows);
    for (const auto& one : scores_of(row)) {
      const std::string text = named(row, one);
      table.rows.push_back({trained, text, one.test ? shown_score(*one.test, row) : "skipped",
                            shown_score(row.accuracy().test, row)});
      if (!one.test)
        table.notes.push_back(fmt::format("{}, {} skipped: {}", trained, text, one.reason));
    }
  }
  return tables;
}

std::vector<Table> params_tables(const std::vector<Row>& rows) {
  return elsewhere_tables(
      rows, "test score with other parameters", "tested with",
      [](const Row& row) { return row.accuracy().by_params; },
      [](const Row& row, const ScoreWithParams& with) {
        return plugin_text({row.key.variant.name, with.params});
      });
}

std::vector<Table> task_tables(const std::vector<Row>& rows) {
  return elsewhere_tables(
      rows, "test score on the task with other parameters", "tested on",
      [](const Row& row) { return row.accuracy().by_task; },
      [](const Row& row, const ScoreOnTask& on) {
        const auto& own = row.key.task.value().params.values();
        std::string text;
        for (const auto& [name, value] : on.params.values())
          if (const auto trained = own.find(name); trained == own.end() || trained->second != value)
            text += (text.empty() ? "" : ",") + name + "=" + to_string(value);
        return text.empty() ? "as trained" : text;
      });
}

std::vector<Table> decoding_tables(const std::vector<Row>& rows) {
  Table table{.title =
                  "output sequences: tokens right, and greedy decoding from states against "
                  "recomputing each prefix",
              .columns = {"variant", "task", "tokens right", "full stands in", "tokens/s",
                          "recomputed", "speed-up", "same"},
              .rows = {},
              .notes = {}};
  const auto number = [](const std::optional<double>& value, const char* digits) {
    return value ? fmt::format(fmt::runtime(digits), *value) : std::string();
  };
  for (const Row& row : rows) {
    if (!row.is_ok() || row.accuracy().places.empty()) continue;
    const AccuracyMetrics& metrics = row.accuracy();
    std::vector<std::string> line = {label(row, rows), task_label(row.key.task.value()),
                                     number(metrics.token_accuracy, "{:.3f}"), replaced(row)};
    if (const auto& decoding = metrics.decoding) {
      line.insert(line.end(),
                  {number(decoding->tokens_per_s, "{:.0f}"),
                   number(decoding->recompute_tokens_per_s, "{:.0f}"),
                   number(decoding->speedup, "{:.1f}"), fmt::format("{:.3f}", decoding->same)});
    } else {
      line.insert(line.end(), {"", "no decode state", "", ""});
    }
    table.rows.push_back(std::move(line));
  }
  return table.rows.empty() ? std::vector<Table>{} : std::vector<Table>{table};
}

}  // namespace attn
