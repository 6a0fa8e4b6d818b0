// One row of several; see pooled.h. O(rows · log rows).
#include "harness/compare/pooled.h"

#include <algorithm>
#include <map>

#include "core/base/check.h"
#include "harness/cell/codec.h"
#include "harness/cell/packed_figures.h"
#include "harness/compare/machines.h"

namespace attn {
namespace {

void require_same_program(const RowsFile& first, const RowsFile& other) {
  std::string why = origin_difference(first.run, other.run);
  const Json here = first.run.environment.value("commit", Json());
  const Json there = other.run.environment.value("commit", Json());
  if (why.empty() && here != there)
    why = fmt::format("commit: {} and {}", text_of(here), text_of(there));
  ATTN_CHECK(why.empty(),
             "'{}' and '{}' are of two programs or machines ({}); --keep all joins "
             "runs of one",
             first.path, other.path, why);
}

void add_times(CellResult& to, const CellResult& more) {
  to.times.insert(to.times.end(), more.times.begin(), more.times.end());
  to.visits.push_back(std::ssize(more.times));
  const auto append = [](std::vector<double>& rates, const std::vector<double>& others) {
    rates.insert(rates.end(), others.begin(), others.end());
  };
  append(to.padded_times, more.padded_times);
  append(to.witness.flops_per_s, more.witness.flops_per_s);
  append(to.witness.copy_bytes_per_s, more.witness.copy_bytes_per_s);
  if (to.disturbance && more.disturbance) *to.disturbance += *more.disturbance;
  to.repeats += more.repeats;
}

// The figures that follow from the time, after the median changed.
void scale_rates(SpeedMetrics& speed, const Summary& time) {
  const double factor = speed.time.median / time.median;
  speed.time = time;
  speed.tokens_per_s *= factor;
  speed.flops_per_s *= factor;
  if (speed.peak_fraction) *speed.peak_fraction *= factor;
  if (speed.witness_fraction) *speed.witness_fraction *= factor;
}

// Of packed sequences, the padded pass beside them: where a run has no sample of it for each of the
// packed pass, as runs of earlier versions, nothing is said of it.
void pool_packed(Row& whole, const std::vector<const Row*>& rows) {
  auto& speed = std::get<SpeedMetrics>(whole.result.metrics);
  if (!speed.packed) return;
  const bool is_paired = std::all_of(rows.begin(), rows.end(), [](const Row* row) {
    return row->result.padded_times.size() == row->result.times.size();
  });
  if (!is_paired) whole.result.padded_times.clear();
  speed.packed = packed_figures(whole.key.axes, speed.time, whole.result.times,
                                whole.result.padded_times, whole.result.visits, 0);
}

// A row keeps no time of each call: of the runs' figures the middle one stands for all.
void pool_serving(SpeedMetrics& speed, const std::vector<const Row*>& rows) {
  if (!speed.serving) return;
  const auto middle = [&](double ServingFigures::*figure) {
    std::vector<double> values;
    for (const Row* row : rows)
      if (const auto& serving = row->speed().serving) values.push_back((*serving).*figure);
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  };
  for (const auto figure : {&ServingFigures::token_p50_s, &ServingFigures::token_p99_s,
                            &ServingFigures::generated_per_s})
    (*speed.serving).*figure = middle(figure);
  if (speed.serving->first_token_s) speed.serving->first_token_s = speed.time.median;
  speed.serving->rounds = speed.time.n;
}

// What is no time of a run, as text: the same in each run of one program.
std::string figures(const Row& row) {
  Json metrics = to_json(row)["metrics"];
  for (const char* moment : {"rss_peak_bytes", "train_s", "examples_per_s", "data_wait_share"})
    metrics.erase(moment);
  return hash_of(metrics);
}

// In one run of many a disturbance is part of the scatter between runs, which the interval holds. A
// witness that fell tells of its visit, so that compare can take it into account.
std::vector<Noise> pooled_noise(const std::vector<const Row*>& rows) {
  std::vector<Noise> noisy;
  for (const auto& [reason, name] : names_of(Noise{})) {
    const auto has = [reason = reason](const Row* row) {
      return std::count(row->result.noisy.begin(), row->result.noisy.end(), reason) > 0;
    };
    const auto runs = std::count_if(rows.begin(), rows.end(), has);
    if (reason == Noise::witness ? runs > 0 : 2 * runs > std::ssize(rows)) noisy.push_back(reason);
  }
  return noisy;
}

Row pooled_row(const std::vector<const Row*>& rows) {
  for (const Row* row : rows)
    if (!row->is_ok()) return *row;
  Row whole = *rows[0];
  const bool has_times = whole.key.measure == Measure::speed;
  if (has_times) whole.result.visits = {std::ssize(whole.result.times)};
  for (size_t i = 1; i < rows.size(); i++) {
    whole.duration_s += rows[i]->duration_s;
    if (has_times)
      add_times(whole.result, rows[i]->result);
    else
      ATTN_CHECK(figures(*rows[i]) == figures(whole),
                 "two runs of cell {} ({} of {}) differ in figures that are no times", whole.cell,
                 name_of(whole.key.measure), name_of_variant(whole.key.variant));
  }
  if (!has_times) return whole;
  const Summary time = summarize(whole.result.times, whole.result.visits);
  auto& speed = std::get<SpeedMetrics>(whole.result.metrics);
  scale_rates(speed, time);
  pool_serving(speed, rows);
  pool_packed(whole, rows);
  whole.result.noisy = pooled_noise(rows);
  whole.result.rounds = std::ssize(whole.result.visits);
  return whole;
}

}  // namespace

PooledRows pooled(const std::vector<RowsFile>& runs) {
  ATTN_CHECK(!runs.empty(), "no run to join");
  std::map<std::string, std::vector<const Row*>> cells;
  for (const RowsFile& run : runs) {
    require_same_program(runs.front(), run);
    for (const Row& row : run.rows) cells[row.cell].push_back(&row);
  }
  PooledRows whole;
  Json head = to_json(runs.front().run);
  head["merged"] = true;
  whole.lines.push_back(std::move(head));
  for (const Row& row : runs.front().rows) {
    const auto& of_cell = cells.at(row.cell);
    ATTN_CHECK(of_cell.size() == runs.size(),
               "cell {} ({} of {}) is in {} of {} runs; each must "
               "have it",
               row.cell, name_of(row.key.measure), name_of_variant(row.key.variant), of_cell.size(),
               runs.size());
    whole.lines.push_back(to_json(pooled_row(of_cell)));
    cells.erase(row.cell);
  }
  ATTN_CHECK(cells.empty(), "cell {} is not in the first run, '{}'", cells.begin()->first,
             runs.front().path);
  whole.cells = whole.lines.size() - 1;
  return whole;
}

}  // namespace attn
