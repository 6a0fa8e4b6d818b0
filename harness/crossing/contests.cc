// Contests from cells and rows; see contests.h. O(contests · lengths · log rows).
#include "harness/crossing/contests.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "core/base/check.h"
#include "harness/compare/times.h"
#include "harness/plan/labels.h"
#include "variants/catalog.h"

namespace attn {
namespace {

std::string text_of_axes(Axes axes) {
  axes.length.reset();
  std::string text;
  for (const auto& [name, value] : named_values(axes)) text += name + "=" + to_string(value) + " ";
  return text;
}

// The same text for cells that differ in the variant and the length alone.
std::string place_of(Measure measure, const Axes& axes) {
  return fmt::format("{} {}", name_of(measure), text_of_axes(axes));
}

bool can_cross(const CellKey& key) {
  // A decoded token of a layer has the layer's projections, which the others leave out.
  if (key.axes.mode == Mode::decode && has_paper_block(key.variant)) return false;
  return (key.measure == Measure::speed || key.measure == Measure::memory) && key.axes.length;
}

using RowIndex = std::map<std::tuple<std::string, std::string, int64_t>, const Row*>;

// Of the rows, those of one variant of a contest by length.
std::map<int64_t, const Row*> rows_of(const Contest& contest, const Plugin& variant,
                                      const RowIndex& index) {
  std::map<int64_t, const Row*> rows;
  const std::string place = place_of(contest.measure, contest.axes), text = plugin_text(variant);
  for (auto it = index.lower_bound({place, text, 0}); it != index.end(); ++it) {
    const auto& [other_place, other_text, length] = it->first;
    if (other_place != place || other_text != text) break;
    rows[length] = it->second;
  }
  return rows;
}

// nullopt: a time of a single visit, which has no variance.
std::optional<Change> ratio_of(const Row& variant, const Row& rival,
                               const std::map<const Row*, LogTime>& times) {
  if (variant.key.measure == Measure::speed)
    return change_of({times.at(&variant)}, {times.at(&rival)});
  const auto mine = static_cast<double>(variant.memory().peak_bytes);
  const auto theirs = static_cast<double>(rival.memory().peak_bytes);
  return Change{.value = std::log(mine / theirs)};
}

Standing standing_of(const Contest& contest, const RowIndex& index,
                     const std::map<const Row*, LogTime>& times) {
  Standing standing;
  Curve& curve = standing.curve;
  curve.low = contest.low;
  curve.high = contest.high;
  curve.unusable = contest.absent;
  if (!contest.absent.empty()) standing.why_unusable = "the sweep leaves such lengths out";
  const auto mine = rows_of(contest, contest.variant, index);
  const auto theirs = rows_of(contest, contest.rival, index);
  const auto refuse = [&](int64_t length, const std::string& why) {
    if (standing.why_unusable.empty()) standing.why_unusable = why;
    curve.unusable.insert(length);
  };
  const auto fault = [](const Row& row) {
    return fmt::format("{} {}: {}", variant_label(row.key.variant), name_of(row.result.status),
                       row.result.reason);
  };
  for (const auto& rows : {mine, theirs})
    for (const auto& [length, row] : rows)
      if (!row->is_ok()) refuse(length, fault(*row));
  for (const auto& [length, row] : mine) {
    const auto rival = theirs.find(length);
    if (rival == theirs.end() || curve.unusable.count(length)) continue;
    const auto ratio = ratio_of(*row, *rival->second, times);
    if (!ratio) {
      refuse(length, "a time of a single visit has no variance");
      continue;
    }
    curve.points.push_back({length, *ratio});
    standing.noisy += !row->result.noisy.empty() + !rival->second->result.noisy.empty();
  }
  standing.state = search_step(curve);
  return standing;
}

}  // namespace

std::string rivals_spec() {
  const VariantInfo& exact = exact_reference();
  std::string settings;
  for (const ParamSpec& spec : exact.params) {
    std::string choices;
    size_t count = 0;
    for (const std::string& choice : spec.choices)
      if (is_exact_with(spec.name, choice)) choices += (count++ > 0 ? "," : "") + choice;
    if (count > 1)
      settings += fmt::format("{}{}=[{}]", settings.empty() ? "" : ",", spec.name, choices);
  }
  return settings.empty() ? exact.name : fmt::format("{}[{}]", exact.name, settings);
}

std::vector<Contest> contests_of(const std::vector<CellKey>& variants,
                                 const std::vector<CellKey>& rivals) {
  std::vector<Contest> contests;
  std::map<std::string, std::vector<Plugin>> rivals_at;
  for (const CellKey& key : rivals) {
    std::vector<Plugin>& known = rivals_at[place_of(key.measure, key.axes)];
    if (can_cross(key) && std::find(known.begin(), known.end(), key.variant) == known.end())
      known.push_back(key.variant);
  }
  std::map<std::string, std::vector<size_t>> index;  // by place and variant
  for (const CellKey& key : variants) {
    if (!can_cross(key)) continue;
    const int64_t length = key.axes.length.value();
    const std::string place = place_of(key.measure, key.axes);
    const auto [it, is_new] = index.try_emplace(place + plugin_text(key.variant));
    for (const size_t known : it->second) {
      contests[known].low = std::min(contests[known].low, length);
      contests[known].high = std::max(contests[known].high, length);
    }
    if (!is_new) continue;
    for (const Plugin& rival : rivals_at[place]) {
      const bool is_met = index.count(place + plugin_text(rival)) &&
                          key.variant.name == rival.name;  // itself, or rival of this one before
      if (is_met) continue;
      it->second.push_back(contests.size());
      Contest& contest = contests.emplace_back();
      contest.measure = key.measure;
      contest.axes = key.axes;
      contest.axes.length.reset();
      contest.variant = key.variant;
      contest.rival = rival;
      contest.low = contest.high = length;
    }
  }
  return contests;
}

std::vector<Contest> contests_of(const std::vector<Row>& rows, const RunConfig& config) {
  std::set<std::string> asked;
  for (const SweepConfig& sweep : config.sweeps)
    asked.insert(sweep.variants.begin(), sweep.variants.end());
  std::vector<CellKey> variants, rivals;
  for (const Row& row : rows) {
    if (asked.count(plugin_text(row.key.variant))) variants.push_back(row.key);
    if (row.key.variant.name == exact_reference().name) rivals.push_back(row.key);
  }
  return contests_of(variants, rivals);
}

std::vector<Standing> standings(const std::vector<Contest>& contests,
                                const std::vector<Row>& rows) {
  RowIndex index;
  std::vector<const Row*> timed;
  for (const Row& row : rows) {
    if (!can_cross(row.key)) continue;
    index[{place_of(row.key.measure, row.key.axes), plugin_text(row.key.variant),
           row.key.axes.length.value()}] = &row;
    if (row.key.measure == Measure::speed && row.is_ok()) timed.push_back(&row);
  }
  std::map<const Row*, LogTime> times;
  const std::vector<LogTime> found = log_times(timed);
  for (size_t i = 0; i < timed.size(); i++) times[timed[i]] = found[i];
  std::vector<Standing> result;
  for (const Contest& contest : contests) result.push_back(standing_of(contest, index, times));
  return result;
}

bool is_of(const Contest& contest, const CellKey& key) {
  return key.measure == contest.measure && text_of_axes(key.axes) == text_of_axes(contest.axes) &&
         (key.variant == contest.variant || key.variant == contest.rival);
}

}  // namespace attn
