// See verified_notes.h.
#include "harness/tables/verified_notes.h"

#include <fmt/core.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>

#include "harness/plan/labels.h"
#include "harness/tables/grid.h"
#include "harness/tables/table.h"

namespace attn {
namespace {

bool is_compared(const Row& row) {
  return row.is_ok() && (row.key.measure == Measure::speed || row.key.measure == Measure::memory);
}

bool by_identities(const Row& row) {
  return row.result.verified && row.result.verified->by == VerifiedBy::identities;
}

}  // namespace

std::string verified_mark(const Row& row) {
  if (!by_identities(row)) return "";
  return row.result.verified->identities.empty() ? "?" : "~";
}

std::vector<std::string> verified_notes(const std::vector<const Row*>& rows) {
  std::set<std::string> unknown, pieces;
  std::map<std::string, std::set<std::string>> identities;
  int64_t measured = 0, earlier = 0;
  for (const Row* row : rows) {
    if (!is_compared(*row)) continue;
    measured++;
    if (!row->result.verified)
      earlier++;
    else if (row->result.verified->by == VerifiedBy::pieces)
      pieces.insert(label_of(*row));
    else if (verified_mark(*row) == "?")
      unknown.insert(label_of(*row));
    else if (by_identities(*row))
      identities[label_of(*row)].insert(row->result.verified->identities.begin(),
                                        row->result.verified->identities.end());
  }
  std::vector<std::string> notes;
  for (const auto& [label, names] : identities)
    notes.push_back(
        fmt::format("~ {}: no reference was compared at these lengths, only answers of the variant "
                    "with each other ({})",
                    label, fmt::join(names, ", ")));
  if (!pieces.empty()) notes.push_back(fmt::format("compared in pieces: {}", joined(pieces)));
  if (!unknown.empty())
    notes.push_back(
        fmt::format("? {}: nothing could be compared at these lengths", joined(unknown)));
  if (earlier > 0)
    notes.push_back(fmt::format(
        "{} of {} answers were not compared at their own length: their rows are of an earlier "
        "version",
        earlier, measured));
  return notes;
}

}  // namespace attn
