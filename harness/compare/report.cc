// Tables and JSON of a comparison; see report.h.
#include "harness/compare/report.h"

#include <array>
#include <map>

#include "core/base/check.h"
#include "harness/cell/codec.h"

namespace attn {
namespace {

constexpr std::array kOrder = {Judgement::worse, Judgement::better, Judgement::undecided,
                               Judgement::same};

std::string figure_text(const Compared& pair, double value) {
  switch (pair.measure) {
    case Measure::speed:
      return pair.unit == "s" ? human_seconds(value) : fmt::format("{:.3g}", value);
    case Measure::memory:
      return human_bytes(value);
    case Measure::accuracy:
      return fmt::format("{:.3f}", value);
    case Measure::fidelity:
      return fmt::format("{:.3g}", value);
    case Measure::reach:
      return fmt::format("{:.0f}", value);
  }
  return "";
}

std::string change_text(const Compared& pair, std::optional<double> change) {
  if (!change) return "";
  return pair.is_ratio ? fmt::format("{:.3f}", *change) : fmt::format("{:+.3f}", *change);
}

std::string interval_text(const Compared& pair) {
  if (!pair.low || !pair.high) return "";
  return change_text(pair, pair.low) + " to " + change_text(pair, pair.high);
}

std::string probability_text(const std::optional<double>& p) {
  if (!p) return "";
  return *p < 0.001 ? "<0.001" : fmt::format("{:.3f}", *p);
}

const char* subject_of(Measure measure) {
  switch (measure) {
    case Measure::speed:
      return "time";
    case Measure::memory:
      return "peak memory";
    case Measure::accuracy:
      return "test score";
    case Measure::fidelity:
      return "relative error against exact attention";
    case Measure::reach:
      return "reach";
  }
  return "";
}

Table table_of_measure(const Comparison& comparison, Measure measure) {
  Table table{
      .title = fmt::format("{}, OLD against NEW, threshold {:g} %", subject_of(measure),
                           100 * comparison.threshold),
      .columns = {"cell", "OLD", "NEW", "change", "95 % interval", "p (Holm)", "verdict", "by"},
      .rows = {},
      .notes = {}};
  bool has_ratio_to = false;
  for (const Judgement verdict : kOrder)
    for (const Compared& pair : comparison.pairs) {
      if (pair.measure != measure || pair.verdict != verdict) continue;
      has_ratio_to = has_ratio_to || pair.unit.starts_with("ratio");
      table.rows.push_back({pair.label, figure_text(pair, pair.before),
                            figure_text(pair, pair.after), change_text(pair, pair.change),
                            interval_text(pair), probability_text(pair.corrected),
                            verdict_word(measure, verdict), pair.basis});
    }
  if (has_ratio_to) table.title += "; " + comparison.pairs.front().unit;
  return table;
}

// Counts of equal texts, in the order of the texts.
std::map<std::string, int64_t> reasons_of(const Comparison& comparison, Measure measure) {
  std::map<std::string, int64_t> reasons;
  for (const LeftOut& pair : comparison.left_out)
    if (pair.measure == measure) reasons[pair.reason]++;
  return reasons;
}

Table counts_table(const Comparison& comparison) {
  Table table{.title = "pairs of cells",
              .columns = {"measure", "worse", "better", "undecided", "same", "not compared"},
              .rows = {},
              .notes = {}};
  for (const Measure measure : kMeasures) {
    std::vector<std::string> line = {name_of(measure)};
    int64_t all = 0, left_out = 0;
    for (const Judgement verdict : kOrder) {
      int64_t count = 0;
      for (const Compared& pair : comparison.pairs)
        count += pair.measure == measure && pair.verdict == verdict;
      line.push_back(std::to_string(count));
      all += count;
    }
    for (const auto& [reason, count] : reasons_of(comparison, measure)) {
      left_out += count;
      table.notes.push_back(
          fmt::format("{} not compared: {}: {}", name_of(measure), count, reason));
    }
    line.push_back(std::to_string(left_out));
    if (all + left_out > 0) table.rows.push_back(std::move(line));
  }
  if (comparison.before_only > 0)
    table.notes.push_back(fmt::format("only in OLD: {}", comparison.before_only));
  if (comparison.after_only > 0)
    table.notes.push_back(fmt::format("only in NEW: {}", comparison.after_only));
  table.notes.insert(table.notes.end(), comparison.notes.begin(), comparison.notes.end());
  return table;
}

Json number(const std::optional<double>& value) {
  return value ? finite_or_null(*value) : Json(nullptr);
}

}  // namespace

std::vector<Table> comparison_tables(const Comparison& comparison) {
  std::vector<Table> tables;
  for (const Measure measure : kMeasures) {
    Table table = table_of_measure(comparison, measure);
    if (!table.rows.empty()) tables.push_back(std::move(table));
  }
  tables.push_back(counts_table(comparison));
  return tables;
}

std::vector<Json> pairs_json(const Comparison& comparison) {
  std::vector<Json> pairs;
  for (const Compared& pair : comparison.pairs) {
    pairs.push_back({{"measure", name_of(pair.measure)},
                     {"label", pair.label},
                     {"variant", to_json(pair.key.variant)},
                     {"task", pair.key.task ? to_json(*pair.key.task) : Json()},
                     {"axes", to_json(pair.key.axes)},
                     {"unit", pair.unit},
                     {"old", finite_or_null(pair.before)},
                     {"new", finite_or_null(pair.after)},
                     {"change", pair.is_ratio ? "ratio" : "difference"},
                     {"value", number(pair.change)},
                     {"low", number(pair.low)},
                     {"high", number(pair.high)},
                     {"p", number(pair.p)},
                     {"p_holm", number(pair.corrected)},
                     {"verdict", name_of(pair.verdict)},
                     {"word", verdict_word(pair.measure, pair.verdict)},
                     {"basis", pair.basis}});
    if (pair.widened) pairs.back()["widened"] = finite_or_null(*pair.widened);
  }
  return pairs;
}

Json comparison_json(const Comparison& comparison) {
  Json left_out = Json::array();
  for (const LeftOut& pair : comparison.left_out)
    left_out.push_back(
        {{"measure", name_of(pair.measure)}, {"label", pair.label}, {"reason", pair.reason}});
  return {{"threshold", comparison.threshold},
          {"regression", comparison.has_regression()},
          {"pairs", pairs_json(comparison)},
          {"left_out", left_out},
          {"only_in_old", comparison.before_only},
          {"only_in_new", comparison.after_only},
          {"notes", comparison.notes}};
}

std::string summary_line(const Comparison& comparison) {
  return fmt::format("{} pairs: {} worse, {} better, {} same, {} undecided; {} not compared",
                     comparison.pairs.size(), comparison.count(Judgement::worse),
                     comparison.count(Judgement::better), comparison.count(Judgement::same),
                     comparison.count(Judgement::undecided), comparison.left_out.size());
}

}  // namespace attn
