// From visits to the figures of a speed row; see speed_cell.h.
#include "harness/run/speed_cell.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/marks.h"
#include "harness/cell/packed_figures.h"
#include "harness/measure/calibrate.h"
#include "harness/run/noisy.h"
#include "harness/run/serving_figures.h"

namespace attn {
namespace {

CellResult without_figures(std::string reason) {
  return {.status = Status::failed, .reason = std::move(reason)};
}

double middle_of(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Parts in the order of their list; those without time are left out.
std::optional<Breakdown> breakdown_of(const MarkedPasses& marked) {
  if (marked.empty() || marked.marked_s.size() != marked.plain_s.size()) return std::nullopt;
  std::vector<double> ratios;
  double passes_s = 0, parts_s = 0;
  for (size_t i = 0; i < marked.marked_s.size(); ++i) {
    passes_s += marked.marked_s[i];
    ratios.push_back(marked.marked_s[i] / marked.plain_s[i]);
  }
  for (const auto& [part, seconds] : marked.part_s) parts_s += seconds;
  Breakdown breakdown{
      .passes = marked.passes,
      .pass_s = passes_s / static_cast<double>(marked.marked_s.size()),
      .marks = static_cast<double>(marked.marks) / static_cast<double>(marked.passes),
      .overhead = middle_of(ratios) - 1,
      .shares = {}};
  for (const auto& [part, name] : names_of(Part{}))
    if (const auto found = marked.part_s.find(name); found != marked.part_s.end())
      breakdown.shares.emplace_back(name, found->second / parts_s);
  return breakdown;
}

// Positions of all sequences that one pass or call answers, none of which is padding.
double answered_positions(const Axes& axes) {
  if (axes.packed) return static_cast<double>(packed_positions(axes));
  if (axes.workload)
    return static_cast<double>(query_positions_of(parse_mixed_batch(*axes.workload)));
  const int64_t each = axes.mode == Mode::decode ? 1 : axes.length.value();
  return static_cast<double>(axes.batch.value() * each);
}

}  // namespace

void SpeedCell::add(const TakenVisit& taken) {
  if (calm_within_s_ > 0) taken_.push_back(taken);
  count(taken);
}

void SpeedCell::count(const TakenVisit& taken) {
  const Visit& visit = taken.visit;
  times_.insert(times_.end(), visit.times.begin(), visit.times.end());
  later_s_.insert(later_s_.end(), visit.later_s.begin(), visit.later_s.end());
  if (!visit.calls.empty()) calls_.push_back(visit.calls);
  padded_s_.insert(padded_s_.end(), visit.padded_s.begin(), visit.padded_s.end());
  sizes_.push_back(std::ssize(visit.times));
  last_ = visit;
  was_stopped_ = was_stopped_ || taken.was_stopped;
  fell_ = fell_ || taken.fell;
  marked_ += visit.marked;
  if (visit.verified) {
    if (verified_)
      add_visit(*verified_, *visit.verified);
    else
      verified_ = visit.verified;
  }
  if (visit.witness) {
    witness_.flops_per_s.push_back(visit.witness->flops_per_s);
    witness_.copy_bytes_per_s.push_back(visit.witness->copy_bytes_per_s);
  }
  if (!visit.disturbance) return;
  if (disturbance_)
    *disturbance_ += *visit.disturbance;
  else
    disturbance_ = visit.disturbance;
}

int64_t SpeedCell::calm_visits() const {
  return std::count_if(taken_.begin(), taken_.end(),
                       [](const TakenVisit& taken) { return !taken.is_disturbed; });
}

// A visit that was disturbed counts as one that was made again.
void SpeedCell::count_calm_visits_alone() {
  times_.clear();
  later_s_.clear();
  calls_.clear();
  padded_s_.clear();
  sizes_.clear();
  witness_ = {};
  disturbance_.reset();
  marked_ = {};
  was_stopped_ = fell_ = false;
  for (const TakenVisit& taken : taken_)
    if (taken.is_disturbed)
      repeats++;
    else
      count(taken);
}

std::optional<VisitsEnd> SpeedCell::end(uint64_t seed) {
  const bool has_times =
      std::all_of(times_.begin(), times_.end(), [](double time) { return time > 0; });
  const int64_t visits = std::ssize(sizes_);
  if (has_times && calm_within_s_ > 0 && visits >= rounds_) {
    if (calm_visits() >= rounds_) {
      count_calm_visits_alone();
      return end_ = VisitsEnd::rounds;
    }
    if (seconds >= calm_within_s_) return end_ = VisitsEnd::max_time;
    if (visits >= kMostVisits) return end_ = VisitsEnd::max_visits;
    return std::nullopt;
  }
  const Summary time = has_times ? summarize(times_, sizes_, seed) : Summary{};
  end_ = stopping_.after(time, visits, seconds);
  if (!has_times) end_ = VisitsEnd::rounds;  // result() says what is wrong
  return end_;
}

CellResult SpeedCell::marked(CellResult result, uint64_t seed, int64_t cores) const {
  result.order_seed = seed;
  result.rounds = std::ssize(sizes_);
  result.repeats = repeats;
  result.pinned = cpus;
  result.witness = witness_;
  result.disturbance = disturbance_;
  if (result.status == Status::ok) result.verified = verified_;
  if (result.status == Status::ok) result.sizes = last_.sizes;
  if (result.status == Status::ok) result.visits_ended_by = end_;
  result.noisy =
      noise_of(fell_, disturbance_.value_or(Disturbance{}), key_->axes.threads.value(), cores);
  if (was_stopped_) result.noisy.insert(result.noisy.begin(), Noise::stopped);
  return result;
}

CellResult SpeedCell::result(uint64_t seed, const Calibration* machine) const {
  for (const std::vector<double>* times : {&times_, &padded_s_})
    if (!std::all_of(times->begin(), times->end(), [](double time) { return time > 0; }))
      return without_figures("the clock gave no time for a run");
  const Axes& axes = key_->axes;
  const Summary time = summarize(times_, sizes_, seed);
  const double positions = answered_positions(axes);
  const int threads = static_cast<int>(axes.threads.value());
  SpeedMetrics metrics{.time = time,
                       .tokens_per_s = positions / time.median,
                       .flops = last_.flops,
                       .flops_per_s = last_.flops / time.median,
                       .peak_fraction = std::nullopt,
                       .witness_fraction = std::nullopt,
                       .bytes = last_.bytes,
                       .roofline_s = std::nullopt,
                       .declares_cost = last_.cost != CostSource::measured,
                       .state_bytes = last_.state_bytes,
                       .breakdown = breakdown_of(marked_),
                       .serving = std::nullopt,
                       .queue = std::nullopt,
                       .packed = std::nullopt};
  if (axes.workload)
    metrics.serving = serving_figures(parse_mixed_batch(*axes.workload), times_, later_s_);
  if (axes.arrivals)
    metrics.queue = queue_figures(parse_mixed_batch(*axes.workload), calls_, *axes.arrivals,
                                  static_cast<uint64_t>(axes.seed.value()));
  if (axes.packed) metrics.packed = packed_figures(axes, time, times_, padded_s_, sizes_, seed);
  // The peak, and the witness, are of products in float32; those with a cache of fewer bits may be
  // of integers.
  const bool is_native =
      (last_.dtype && last_.dtype->path == DtypePath::native) || axes.kv_dtype.has_value();
  if (!witness_.empty() && !is_native)
    metrics.witness_fraction = metrics.flops_per_s / (threads * middle_of(witness_.flops_per_s));
  if (machine && !is_native) {
    metrics.peak_fraction = metrics.flops_per_s / peak_of(*machine, threads);
    if (!(*metrics.peak_fraction <= 1))
      return without_figures(fmt::format(
          "{:.3g} FLOP/s would be {:.2f} of the machine's measured peak: the clock, the "
          "calibration or the cost formula is wrong",
          metrics.flops_per_s, *metrics.peak_fraction));
    if (last_.bytes) metrics.roofline_s = roofline_of(*machine, threads, last_.flops, *last_.bytes);
  }
  if (machine && axes.kv_dtype && last_.bytes)  // by memory alone
    metrics.roofline_s = roofline_of(*machine, threads, 0, *last_.bytes);
  return {.status = Status::ok,
          .reason = "",
          .metrics = metrics,
          .times = times_,
          .padded_times = padded_s_,
          .curve = std::nullopt,
          .cost = last_.cost,
          .dtype = last_.dtype,
          .visits = sizes_};
}

}  // namespace attn
