// From rows to points: a length gives one, of time the geometric mean of its visits' medians. What
// sets a length apart (tiles at its end, places of its arrays) is the same in all its visits, so
// that they are no points of their own. See growth.h.
#include "harness/growth/growth.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/check.h"
#include "harness/measure/statistics.h"
#include "harness/plan/labels.h"

namespace attn {
namespace {

struct Series {
  Growth growth;
  std::map<int64_t, std::vector<double>> values;  // by length: of each visit, or one of memory
  std::map<int64_t, double> declared;
};

std::string axes_but_length(const Row& row) {
  static const std::set<std::string> hidden = {"length", "repetitions", "seed"};
  std::string text;
  for (const auto& [name, value] : named_values(row.key.axes))
    if (!hidden.count(name)) text += (text.empty() ? "" : ", ") + name + " " + to_string(value);
  return text;
}

// "" where the row gave its length points.
std::string add(const Row& row, Series& series) {
  const int64_t length = row.key.axes.length.value();
  if (row.key.measure == Measure::speed) {
    const SpeedMetrics& speed = row.speed();
    for (const double log : log_medians(row.result.times, row.result.visits))
      series.values[length].push_back(std::exp(log));
    if (speed.declares_cost) series.declared[length] = speed.flops;
    return "";
  }
  const MemoryMetrics& memory = row.memory();
  if (!memory.extra_bytes) return "the rows do not hold extra_bytes";
  if (*memory.extra_bytes <= 0) return fmt::format("no memory beyond inputs at {}", length);
  series.values[length] = {static_cast<double>(*memory.extra_bytes)};
  if (memory.declared_extra_bytes.value_or(0) > 0)
    series.declared[length] = static_cast<double>(*memory.declared_extra_bytes);
  return "";
}

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

std::vector<LengthPoint> points_of(const std::map<int64_t, std::vector<double>>& values) {
  std::vector<LengthPoint> points;
  for (const auto& [length, list] : values)
    points.push_back({static_cast<double>(length), geometric_mean(list)});
  return points;
}

double slope_between(const std::map<int64_t, double>& values) {
  std::vector<LengthPoint> points;
  for (const auto& [length, value] : values) points.push_back({static_cast<double>(length), value});
  if (points.size() == 2)  // a law of three is a line through two
    return std::log(points[1].value / points[0].value) /
           std::log(points[1].length / points[0].length);
  return PowerLaw(points).exponent();
}

void fit(Series& series, const std::optional<int64_t>& at) {
  Growth& growth = series.growth;
  for (const auto& [length, values] : series.values) growth.lengths.push_back(length);
  std::vector<LengthPoint> points = points_of(series.values);
  if (!growth.reason.empty()) return;
  if (points.size() < 3) {
    growth.reason =
        fmt::format("{} length{}; a fit needs 3", points.size(), points.size() == 1 ? "" : "s");
    return;
  }
  growth.law.emplace(points);
  if (series.declared.size() == series.values.size())
    growth.declared = slope_between(series.declared);
  if (at) growth.extrapolated = growth.law->at(static_cast<double>(*at));
  if (points.size() < 4) return;
  const LengthPoint longest = points.back();
  points.pop_back();
  growth.held_back = Growth::HeldBack{.length = growth.lengths.back(),
                                      .measured = longest.value,
                                      .predicted = PowerLaw(points).at(longest.length)};
}

}  // namespace

std::vector<Growth> growth_of(const std::vector<Row>& rows, const GrowthRequest& request) {
  std::vector<Series> all;
  std::map<std::string, size_t> index;
  for (const Row& row : rows) {
    const bool is_asked =
        std::count(request.measures.begin(), request.measures.end(), row.key.measure) > 0 &&
        (row.key.measure == Measure::speed || row.key.measure == Measure::memory);
    // Layers of equal FLOPs have another width at each length: no curve of one model.
    if (!is_asked || row.key.axes.equal == Equal::flops) continue;
    const int64_t length = row.key.axes.length.value();
    if ((request.from > 0 && length < request.from) || (request.to > 0 && length > request.to))
      continue;
    const std::string group = axes_but_length(row), variant = variant_label(row.key.variant);
    const auto [place, is_new] =
        index.try_emplace(name_of(row.key.measure) + group + "|" + variant, all.size());
    if (is_new) {
      all.emplace_back();
      all.back().growth.measure = row.key.measure;
      all.back().growth.group = group;
      all.back().growth.variant = variant;
      all.back().growth.plugin = row.key.variant;
    }
    Series& series = all[place->second];
    std::string why =
        row.is_ok() ? "" : fmt::format("{} at {}", name_of(row.result.status), length);
    if (why.empty()) why = add(row, series);
    if (series.growth.reason.empty()) series.growth.reason = why;
  }
  std::vector<Growth> found;
  for (Series& series : all) {
    // What was skipped or out of memory at some lengths still grows at the others.
    if (series.values.size() >= 3) series.growth.reason.clear();
    fit(series, request.at);
    found.push_back(std::move(series.growth));
  }
  return found;
}

}  // namespace attn
