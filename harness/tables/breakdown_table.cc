// Where the time of a pass goes: a line a variant and length, a column a part. Parts that stay
// small in every line share a column, so that lines add up to 100 %.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/base/check.h"
#include "core/base/marks.h"
#include "harness/tables/grid.h"

namespace attn {
namespace {

constexpr double kLeastShare = 0.01;    // of a part that has a column of its own
constexpr double kLeastShown = 0.0005;  // 0.1 % when rounded

const Breakdown* breakdown_of(const Row& row) {
  if (row.key.measure != Measure::speed || !row.is_ok() || !row.speed().breakdown) return nullptr;
  return &*row.speed().breakdown;
}

double share_of(const Breakdown& breakdown, const std::string& part) {
  for (const auto& [name, share] : breakdown.shares)
    if (name == part) return share;
  return 0;
}

double shown_of(const Breakdown& breakdown, const std::vector<std::string>& parts) {
  double sum = 0;
  for (const std::string& part : parts) sum += share_of(breakdown, part);
  return sum;
}

std::string percent_text(double share) { return fmt::format("{:.1f}", 100 * share); }

// Parts with a column of their own, in the order of their list.
std::vector<std::string> part_columns(const std::vector<const Row*>& rows) {
  std::vector<std::string> columns;
  for (const auto& [part, name] : names_of(Part{}))
    if (std::any_of(rows.begin(), rows.end(), [&, name = name](const Row* row) {
          return share_of(*breakdown_of(*row), name) >= kLeastShare;
        }))
      columns.emplace_back(name);
  return columns;
}

Table breakdown_table(const std::string& group, const std::vector<const Row*>& rows) {
  Table table{.title = "where the time of a pass goes, in percent of its threads' time; " + group,
              .columns = {"variant", "length", "pass in ms"},
              .rows = {},
              .notes = {}};
  const std::vector<std::string> parts = part_columns(rows);
  table.columns.insert(table.columns.end(), parts.begin(), parts.end());
  const bool has_small = std::any_of(rows.begin(), rows.end(), [&](const Row* row) {
    return 1 - shown_of(*breakdown_of(*row), parts) >= kLeastShown;
  });
  if (has_small) table.columns.push_back(fmt::format("parts below {:g} %", 100 * kLeastShare));
  table.columns.push_back("marks add");
  for (const Row* row : rows) {
    const Breakdown& breakdown = *breakdown_of(*row);
    std::vector<std::string> line = {label_of(*row), length_text(*row),
                                     fmt::format("{:.3g}", breakdown.pass_s * 1e3)};
    for (const std::string& part : parts) {
      const double share = share_of(breakdown, part);
      line.push_back(share > 0 ? percent_text(share) : "");
    }
    if (has_small) line.push_back(percent_text(std::max(0.0, 1 - shown_of(breakdown, parts))));
    line.push_back(fmt::format("{:+.1f} %", 100 * breakdown.overhead));
    table.rows.push_back(std::move(line));
  }
  table.notes.push_back(
      "from passes with marks, beside those that are timed; marks add: how much longer they are; "
      "other: what no mark names");
  return table;
}

}  // namespace

std::vector<Table> breakdown_tables(const std::vector<Row>& rows) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<const Row*>> groups;
  for (const Row& row : rows) {
    if (!breakdown_of(row)) continue;
    const std::string group = axes_text(row, {"length", "seed", "repetitions"});
    if (!groups.count(group)) order.push_back(group);
    groups[group].push_back(&row);
  }
  std::vector<Table> tables;
  for (const std::string& group : order) tables.push_back(breakdown_table(group, groups[group]));
  return tables;
}

}  // namespace attn
