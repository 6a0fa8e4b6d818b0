// See agreement_report.h.
#include "harness/compare/agreement_report.h"

#include <fmt/format.h>

#include <map>

namespace attn {
namespace {

std::vector<std::string> texts_of_pair(const Agreement& pair) {
  return {fmt::format("{} with {}", pair.task, pair.with_task), std::to_string(pair.variants),
          fmt::format("{:.2f}", *pair.tau),
          pair.interval ? fmt::format("{:.2f} to {:.2f}", pair.interval->low, pair.interval->high)
                        : ""};
}

}  // namespace

std::vector<Table> agreement_tables(const Agreements& agreements) {
  if (agreements.empty()) return {};
  Table table{.title =
                  "do variants stand in the same order on a task as on one scored in bits a "
                  "token?",
              .columns = {"tasks", "variants", "Kendall's tau", "95 % interval"},
              .rows = {},
              .notes = {}};
  std::map<std::string, std::string> without;  // pairs by reason
  for (const Agreement& pair : agreements.pairs) {
    if (pair.tau) {
      table.rows.push_back(texts_of_pair(pair));
      continue;
    }
    std::string& listed = without[pair.reason];
    listed += fmt::format("{}{} with {}", listed.empty() ? "" : ", ", pair.task, pair.with_task);
  }
  if (!table.rows.empty()) {
    table.notes.emplace_back(
        "tau (b) of the mean scores of the variants that both tasks have, each with its "
        "parameters: 1 where both tasks put them in the same order, -1 in the opposite one");
    table.notes.push_back(fmt::format(
        "interval over variants: Fieller, Hartley and Pearson 1957 with Student's quantile; fewer "
        "than {} variants get none",
        kLeastOrdered));
  }
  for (const auto& [reason, pairs] : without)
    table.notes.push_back(fmt::format("no tau: {}: {}", reason, pairs));
  table.notes.insert(table.notes.end(), agreements.left_out.begin(), agreements.left_out.end());
  return {table};
}

std::vector<Json> agreement_lines(const Agreements& agreements) {
  std::vector<Json> lines;
  for (const Agreement& pair : agreements.pairs) {
    Json line = {{"measure", "agreement"},
                 {"task", pair.task},
                 {"with_task", pair.with_task},
                 {"variants", pair.variants},
                 {"tau", pair.tau ? Json(*pair.tau) : Json()},
                 {"interval", Json()},
                 {"reason", pair.tau ? Json() : Json(pair.reason)}};
    if (pair.interval)
      line["interval"] = {{"low", pair.interval->low}, {"high", pair.interval->high}};
    lines.push_back(std::move(line));
  }
  for (const std::string& note : agreements.left_out)
    lines.push_back({{"measure", "agreement"}, {"reason", note}});
  return lines;
}

}  // namespace attn
