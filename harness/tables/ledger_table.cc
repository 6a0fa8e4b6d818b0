// The parity ledger: what the rows of a table share and what they do not, so that nobody compares
// unlike things unawares. See grid.h.
#include <array>
#include <cmath>

#include "core/base/check.h"
#include "harness/sweep/labels.h"
#include "harness/tables/grid.h"

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
  void add(const Json& value) {
    if (!value.is_number()) return;
    low = std::min(low, value.get<double>());
    high = std::max(high, value.get<double>());
  }
  std::string text(const char* unit) const {
    if (low > high) return "";
    return low == high ? human(low, unit) : human(low, unit) + " to " + human(high, unit);
  }
};

struct Entry {
  Range parameters, flops;
  bool counted = false;  // FLOPs of a variant that declares none
  std::set<std::string> precision, threads, kernels;
};

std::string flops_text(const Entry& entry) {
  const std::string text = entry.flops.text("FLOP");
  return entry.counted && !text.empty() ? text + " measured" : text;
}

// What "FLOPs" counts in a row of this measure.
std::string pass_of(const std::string& measure) {
  return measure == "accuracy" ? "training, an example" : measure + ", a pass";
}

// What tells a row's table from others of its measure, whose rows are `like`, but for lengths, over
// which figures range.
std::string setting_of(const Json& row, const std::vector<Json>& like) {
  static const std::set<std::string> ranges = {"length", "seed", "repetitions", "input",
                                               "input_scale"};
  std::string text = row.at("measure") == "accuracy" ? task_label(row.at("task")) : "";
  const auto add = [&](const std::string& words) {
    if (!words.empty()) text += (text.empty() ? "" : ", ") + words;
  };
  for (const auto& [axis, own] : row.at("axes").items()) {
    const bool differs = std::any_of(like.begin(), like.end(), [&, name = axis](const Json& other) {
      return other.at("axes").value(name, Json()) != row.at("axes").at(name);
    });
    if (differs && !ranges.count(axis))
      add(own.is_string() ? text_of(own) : fmt::format("{} {}", axis, text_of(own)));
  }
  if (row.at("measure") == "accuracy") add(training_text(row, like));
  return text;
}

}  // namespace

std::vector<Table> ledger_tables(const std::vector<Json>& rows) {
  using Place = std::array<std::string, 3>;  // measure, setting, variant
  std::vector<Place> order;
  std::map<Place, Entry> entries;
  std::map<std::string, std::vector<Json>> by_measure;
  for (const Json& row : rows) by_measure[row.at("measure")].push_back(row);
  for (const Json& row : rows) {
    if (status_of(row) != "ok" || !row.contains("ledger")) continue;
    const Json& ledger = row.at("ledger");
    const std::string measure = row.at("measure");
    const Place place = {measure, setting_of(row, by_measure[measure]), label_of(row)};
    if (!entries.count(place)) order.push_back(place);
    Entry& entry = entries[place];
    entry.parameters.add(ledger.at("parameters"));
    entry.flops.add(ledger.at("flops"));
    entry.counted = entry.counted || ledger.value("cost", "") == "measured";
    entry.precision.insert(text_of(ledger.at("precision")));
    entry.threads.insert(text_of(ledger.at("threads")));
    const std::string kernel = text_of(ledger.at("kernel"));
    const std::string loops = ledger.contains("loops") ? text_of(ledger.at("loops")) : kernel;
    entry.kernels.insert(loops == kernel ? kernel : kernel + " (rest: " + loops + ")");
  }
  if (order.empty()) return {};
  Table table{.title = "parity ledger: what the variants were given",
              .columns = {"measure", "of", "variant", "parameters", "FLOPs of", "FLOPs",
                          "precision", "threads", "kernel"},
              .rows = {},
              .notes = {}};
  const bool one_setting =
      std::all_of(order.begin(), order.end(), [](const Place& place) { return place[1].empty(); });
  for (const Place& place : order) {
    const Entry& entry = entries[place];
    table.rows.push_back({place[0], place[1], place[2], entry.parameters.text(""),
                          pass_of(place[0]), flops_text(entry), joined(entry.precision),
                          joined(entry.threads), joined(entry.kernels)});
    if (one_setting) table.rows.back().erase(table.rows.back().begin() + 1);
  }
  if (one_setting) table.columns.erase(table.columns.begin() + 1);
  return {table};
}

}  // namespace attn
