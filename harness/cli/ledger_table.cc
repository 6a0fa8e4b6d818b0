// The parity ledger: what the rows of a table share and what they do not, so that nobody compares
// unlike things unawares. See grid.h.
#include <cmath>

#include "core/check.h"
#include "harness/cli/grid.h"
#include "variants/catalog.h"

namespace attn::cli {
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
  std::set<std::string> precision, threads, kernels;
};

std::string joined(const std::set<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : ", ") + value;
  return text;
}

// What "FLOPs" counts in a row of this measure.
std::string pass_of(const std::string& measure) {
  return measure == "accuracy" ? "training, an example" : measure + ", a pass";
}

}  // namespace

std::vector<Table> ledger_tables(const std::vector<Json>& rows) {
  std::vector<std::pair<std::string, std::string>> order;
  std::map<std::pair<std::string, std::string>, Entry> entries;
  for (const Json& row : rows) {
    if (status_of(row) != "ok" || !row.contains("ledger")) continue;
    const Json& ledger = row.at("ledger");
    const std::pair place = {row.at("measure").get<std::string>(), label_of(row)};
    if (!entries.count(place)) order.push_back(place);
    Entry& entry = entries[place];
    entry.parameters.add(ledger.at("parameters"));
    entry.flops.add(ledger.at("flops"));
    entry.precision.insert(text_of(ledger.at("precision")));
    entry.threads.insert(text_of(ledger.at("threads")));
    entry.kernels.insert(text_of(ledger.at("kernel")));
  }
  if (order.empty()) return {};
  Table table{.title = "parity ledger: what the variants were given, over all rows",
              .columns = {"measure", "variant", "parameters", "FLOPs of", "FLOPs", "precision",
                          "threads", "kernel"},
              .rows = {},
              .notes = {}};
  for (const auto& place : order) {
    const Entry& entry = entries[place];
    table.rows.push_back({place.first, place.second, entry.parameters.text(""),
                          pass_of(place.first), entry.flops.text("FLOP"), joined(entry.precision),
                          joined(entry.threads), joined(entry.kernels)});
  }
  return {table};
}

std::string contract_note(const std::set<std::string>& variants) {
  std::set<std::string> exact, other;
  for (const std::string& name : variants)
    (find_variant(name).traits.exact ? exact : other).insert(name);
  if (exact.empty() || other.empty()) return {};
  return fmt::format("not one function: exact softmax attention is {}; something else {} {}",
                     joined(exact), other.size() == 1 ? "is" : "are", joined(other));
}

}  // namespace attn::cli
