// See report.h.
#include "harness/crossing/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/check.h"
#include "harness/plan/labels.h"

namespace attn {
namespace {

bool is_time(const Contest& contest) { return contest.measure == Measure::speed; }

std::string word_of(const Contest& contest, bool is_less) {
  if (is_time(contest)) return is_less ? "faster" : "slower";
  return is_less ? "less" : "more";
}

std::string range_text(int64_t low, int64_t high) { return fmt::format("{} to {}", low, high); }

// "64, 216", or, of many, "7 lengths between 64 and 2432".
std::string listed(const std::vector<int64_t>& lengths) {
  constexpr size_t kFew = 3;
  if (lengths.size() > kFew)
    return fmt::format("{} lengths between {} and {}", lengths.size(), lengths.front(),
                       lengths.back());
  std::string text;
  for (const int64_t length : lengths)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", length);
  return text;
}

// Of a pair without a crossing.
std::string outcome_without(const Contest& contest, const Standing& standing) {
  const auto& signs = standing.state.signs;
  if (signs.empty()) return "not measured";
  const std::string whole = range_text(signs.front().first, signs.back().first);
  const auto is_decided = [](const auto& sign) { return sign.second != 0; };
  const auto first = std::find_if(signs.begin(), signs.end(), is_decided);
  if (first == signs.end())
    return is_time(contest) ? "undecided: times differ by less than their uncertainty from " + whole
                            : "equal at every length from " + whole;
  std::vector<int64_t> others;
  for (const auto& [length, sign] : signs)
    if (sign != first->second) others.push_back(length);
  const std::string word = word_of(contest, first->second < 0);
  if (others.empty()) return fmt::format("{} at every length from {}", word, whole);
  const auto last = std::find_if(signs.rbegin(), signs.rend(), is_decided);
  return fmt::format("{} from {}; {} at {}", word, range_text(first->first, last->first),
                     is_time(contest) ? "undecided" : "equal", listed(others));
}

std::string outcome_of(const Contest& contest, const Crossing& crossing) {
  const std::string after = word_of(contest, crossing.is_less_after);
  return crossing.is_found ? fmt::format("{} from {:.0f}", after, crossing.at)
                           : fmt::format("{} from somewhere between {:.0f} and {:.0f}", after,
                                         crossing.low, crossing.high);
}

std::string interval_text(const Crossing& crossing) {
  if (!crossing.is_found) return "undecided";
  return fmt::format("{:.0f} to {:.0f}{}", std::floor(crossing.low), std::ceil(crossing.high),
                     crossing.is_narrow ? "" : " (wide)");
}

std::string text_of_place(const Contest& contest) {
  static const std::set<std::string> hidden = {"length", "repetitions", "seed"};
  std::string text;
  for (const auto& [name, value] : named_values(contest.axes))
    if (!hidden.count(name)) text += (text.empty() ? "" : ", ") + name + " " + to_string(value);
  return text;
}

std::string title_of(const Contest& contest) {
  return fmt::format("{} against exact attention, from which length on; {}",
                     is_time(contest) ? "time" : "memory", text_of_place(contest));
}

size_t lengths_of(const Standing& standing) {
  return standing.curve.points.size() + standing.curve.unusable.size();
}

std::vector<std::string> notes_of(const std::vector<Contest>& contests,
                                  const std::vector<Standing>& found) {
  std::vector<std::string> notes;
  std::map<std::string, size_t> without_figure;  // by the reason
  size_t noisy = 0, points = 0;
  bool is_wide = false, is_undecided = false, goes_on = false;
  for (size_t i = 0; i < contests.size(); i++) {
    const Standing& standing = found[i];
    noisy += standing.noisy;
    points += 2 * standing.curve.points.size();
    goes_on |= !standing.state.next.empty();
    for (const Crossing& crossing : standing.state.crossings) {
      is_wide |= crossing.is_found && !crossing.is_narrow;
      is_undecided |= !crossing.is_found;
    }
    size_t& count = without_figure[standing.why_unusable];
    count = std::max(count, standing.curve.unusable.size());
  }
  for (const auto& [why, count] : without_figure)
    if (count > 0)
      notes.push_back(
          fmt::format("{} length{} without a figure: {}", count, count == 1 ? "" : "s", why));
  notes.push_back(is_time(contests[0])
                      ? "interval: 95 %, of a line through the log ratios of times around the "
                        "crossing; lengths: measured, of both"
                      : "peak bytes of inputs, weights, output and temporaries, which are exact: "
                        "the crossing lies between the two lengths; lengths: measured, of both");
  if (is_wide)
    notes.push_back(is_time(contests[0])
                        ? "wide: an end is over 5 % from the crossing; --retry noisy on a "
                          "quieter machine, or --precision 1% in a new file, makes it narrower"
                        : "wide: no length between the two could be measured");
  if (is_undecided)
    notes.push_back(
        "undecided: between these lengths the times differ by less than their uncertainty; "
        "--precision 1% in a new file would tell more");
  if (noisy > 0)
    notes.push_back(fmt::format("{} of {} times were disturbed (--retry noisy)", noisy, points));
  if (goes_on) notes.push_back("the search has not ended; the same command goes on with it");
  const CellCounts counts = cell_counts(contests, found);
  notes.push_back(
      fmt::format("{} cells; a grid in steps of 10 % has {}", counts.measured, counts.of_grid));
  return notes;
}

// The indices of the contests of each table, in order of first appearance.
std::vector<std::vector<size_t>> by_table(const std::vector<Contest>& contests) {
  std::vector<std::vector<size_t>> tables;
  std::map<std::string, size_t> index;
  for (size_t i = 0; i < contests.size(); i++) {
    const auto [it, is_new] = index.emplace(title_of(contests[i]), tables.size());
    if (is_new) tables.emplace_back();
    tables[it->second].push_back(i);
  }
  return tables;
}

}  // namespace

std::vector<Table> crossing_tables(const std::vector<Contest>& contests,
                                   const std::vector<Standing>& found) {
  std::vector<Table> tables;
  for (const std::vector<size_t>& members : by_table(contests)) {
    std::vector<Contest> here;
    std::vector<Standing> standing_here;
    for (const size_t i : members) {
      here.push_back(contests[i]);
      standing_here.push_back(found[i]);
    }
    Table table{.title = title_of(here[0]),
                .columns = {"variant", "against", "is", "interval", "lengths"},
                .rows = {},
                .notes = notes_of(here, standing_here)};
    for (size_t i = 0; i < here.size(); i++) {
      const std::string variant = variant_label(here[i].variant),
                        rival = plugin_text(here[i].rival),
                        lengths = std::to_string(lengths_of(standing_here[i]));
      for (const Crossing& crossing : standing_here[i].state.crossings)
        table.rows.push_back(
            {variant, rival, outcome_of(here[i], crossing), interval_text(crossing), lengths});
      if (standing_here[i].state.crossings.empty())
        table.rows.push_back(
            {variant, rival, outcome_without(here[i], standing_here[i]), "", lengths});
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

std::vector<Json> crossing_lines(const std::vector<Contest>& contests,
                                 const std::vector<Standing>& found) {
  std::vector<Json> lines;
  for (size_t i = 0; i < contests.size(); i++) {
    const Contest& contest = contests[i];
    const Standing& standing = found[i];
    const auto line = [&](const std::string& outcome) {
      return Json{{"measure", name_of(contest.measure)},
                  {"axes", text_of_place(contest)},
                  {"variant", plugin_text(contest.variant)},
                  {"rival", plugin_text(contest.rival)},
                  {"from", contest.low},
                  {"to", contest.high},
                  {"lengths", lengths_of(standing)},
                  {"ended", standing.state.next.empty()},
                  {"outcome", outcome}};
    };
    for (const Crossing& crossing : standing.state.crossings) {
      Json crossed = line(outcome_of(contest, crossing));
      crossed["becomes"] = crossing.is_less_after ? "less" : "more";
      crossed["crossing"] = crossing.is_found ? Json(crossing.at) : Json();
      crossed["low"] = crossing.low;
      crossed["high"] = crossing.high;
      crossed["narrow"] = crossing.is_narrow;
      lines.push_back(std::move(crossed));
    }
    if (!standing.state.crossings.empty()) continue;
    Json without = line(outcome_without(contest, standing));
    for (const char* name : {"becomes", "crossing", "low", "high", "narrow"})
      without[name] = nullptr;
    lines.push_back(std::move(without));
  }
  return lines;
}

CellCounts cell_counts(const std::vector<Contest>& contests, const std::vector<Standing>& found) {
  constexpr double kGridStep = 1.1;
  CellCounts counts;
  std::map<std::string, std::set<std::pair<std::string, int64_t>>> measured;
  std::map<std::string, std::map<std::string, size_t>> grid;  // lengths of each variant
  for (size_t i = 0; i < contests.size(); i++) {
    const Contest& contest = contests[i];
    const std::string place = title_of(contest);
    const double whole = std::log(static_cast<double>(contest.high) / contest.low);
    const auto lengths = static_cast<size_t>(std::ceil(whole / std::log(kGridStep))) + 1;
    for (const Plugin* side : {&contest.variant, &contest.rival}) {
      const std::string name = plugin_text(*side);
      for (const RatioPoint& point : found[i].curve.points)
        measured[place].emplace(name, point.length);
      for (const int64_t length : found[i].curve.unusable) measured[place].emplace(name, length);
      grid[place][name] = std::max(grid[place][name], lengths);
    }
  }
  for (const auto& [place, cells] : measured) counts.measured += cells.size();
  for (const auto& [place, variants] : grid)
    for (const auto& [name, lengths] : variants) counts.of_grid += lengths;
  return counts;
}

}  // namespace attn
