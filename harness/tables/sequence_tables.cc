// Accuracy rows by test length, and the decoding of output sequences, as tables.
#include <cmath>

#include "core/base/check.h"
#include "harness/sweep/labels.h"
#include "harness/tables/grid.h"

namespace attn {
namespace {

bool has(const Json& row, const char* metric) {
  return row.at("measure") == "accuracy" && status_of(row) == "ok" &&
         row.at("metrics").contains(metric) && !row.at("metrics").at(metric).is_null();
}

// One line a variant, positions, other settings that rows of one task differ in, and seed.
std::string label(const Json& row, const std::vector<Json>& rows) {
  std::string text = label_of(row);
  if (row.contains("training"))
    text += ", positions " + row.at("training").at("positions").get<std::string>();
  const std::string settings = training_text(row, rows, {"positions"});
  if (!settings.empty()) text += ", " + settings;
  return fmt::format("{}, seed {}", text, text_of(row.at("axes").at("seed")));
}

void add_line(const Json& row, const std::string& label, Table& table) {
  std::vector<std::string> line = {label};
  std::set<std::string> reasons;
  for (const Json& at : row.at("metrics").at("by_length")) {
    const bool scored = at.at("test").is_number();
    line.push_back(scored ? fmt::format("{:.3f}", at.at("test").get<double>()) : "skipped");
    if (!scored) reasons.insert(at.at("reason").get<std::string>());
  }
  table.rows.push_back(std::move(line));
  for (const std::string& reason : reasons)
    table.notes.push_back(fmt::format("{} skipped: {}", label, reason));
}

std::vector<std::string> heads(const Json& row) {
  std::vector<std::string> all = {"variant"};
  for (const Json& at : row.at("metrics").at("by_length"))
    all.push_back(fmt::format("{} (x{})", text_of(at.at("length")), text_of(at.at("factor"))));
  return all;
}

// "cross, decoder": where `full` stands instead of the variant.
std::string replaced(const Json& row) {
  std::string text;
  for (const char* place : {"encoder", "decoder", "cross"}) {
    const Json& places = row.at("metrics").at("places");
    if (std::find(places.begin(), places.end(), place) == places.end())
      text += (text.empty() ? "" : ", ") + std::string(place);
  }
  return text;
}

}  // namespace

std::vector<Table> length_tables(const std::vector<Json>& rows) {
  std::vector<Table> tables;
  std::map<std::vector<std::string>, size_t> by_title;
  for (const Json& row : rows) {
    if (!has(row, "by_length")) continue;
    const std::string title = "test score by length; " + task_heading(row, rows);
    std::vector<std::string> key = heads(row);
    key.push_back(title);
    const auto [found, added] = by_title.emplace(key, tables.size());
    if (added) tables.push_back({.title = title, .columns = heads(row), .rows = {}, .notes = {}});
    add_line(row, label(row, rows), tables[found->second]);
  }
  return tables;
}

std::vector<Table> decoding_tables(const std::vector<Json>& rows) {
  Table table{.title =
                  "output sequences: tokens right, and greedy decoding from states against "
                  "recomputing each prefix",
              .columns = {"variant", "task", "tokens right", "full stands in", "tokens/s",
                          "recomputed", "speed-up", "same"},
              .rows = {},
              .notes = {}};
  for (const Json& row : rows) {
    if (!has(row, "places")) continue;
    const Json& metrics = row.at("metrics");
    std::vector<std::string> line = {
        label(row, rows), task_label(row.at("task")),
        fmt::format("{:.3f}", metrics.at("token_accuracy").get<double>()), replaced(row)};
    if (has(row, "decoding")) {
      const Json& decoding = metrics.at("decoding");
      const auto number = [&](const char* name) { return decoding.at(name).get<double>(); };
      line.insert(line.end(), {fmt::format("{:.0f}", number("tokens_per_s")),
                               fmt::format("{:.0f}", number("recompute_tokens_per_s")),
                               fmt::format("{:.1f}", number("speedup")),
                               fmt::format("{:.3f}", number("same"))});
    } else {
      line.insert(line.end(), {"", "no decode state", "", ""});
    }
    table.rows.push_back(std::move(line));
  }
  return table.rows.empty() ? std::vector<Table>{} : std::vector<Table>{table};
}

}  // namespace attn
