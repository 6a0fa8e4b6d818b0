// Speed cells: those that differ only in the variant are visited in turn, several rounds in random
// order, so that a machine that slows down or warms up does so for all of them.
#include "harness/sweep/rounds.h"

#include <algorithm>
#include <numeric>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "harness/cell/codec.h"
#include "harness/measure/calibrate.h"
#include "harness/measure/statistics.h"
#include "harness/sweep/outcome.h"
#include "harness/sweep/sweeper.h"
#include "harness/sweep/typed_choice.h"

namespace attn {
namespace {

// How often a visit is repeated that was stopped in mid-measurement. If each repeat is stopped too,
// the row is marked `noisy`.
constexpr int kMostRepeats = 3;

// One cell of a group under way.
struct Visits {
  size_t cell = 0;
  std::vector<double> times;
  std::vector<int64_t> sizes;  // of them, how many each visit gave
  double seconds = 0;
  std::vector<std::string> noisy;
  std::string started_at;
  bool ended = false;  // its row is written
};

std::vector<size_t> shuffled(size_t count, Rng& random) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = count; i > 1; i--) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

CellResult failed(std::string reason) {
  return {.status = Status::failed, .reason = std::move(reason)};
}

// What is wrong with a visit's reply; "" where `visit` was read.
std::string take_visit(const Reply& reply, Visit& visit) {
  try {
    visit = visit_of(reply);
  } catch (const Error& error) {
    return one_line(error.what());
  }
  return "";
}

int64_t share(int64_t total, int64_t rounds, int64_t round) {
  return (total + rounds - 1 - round) / rounds;
}

}  // namespace

void Sweeper::run_speed() {
  std::vector<std::vector<size_t>> groups;
  std::map<std::string, size_t> index;
  for (const size_t cell : missing(Measure::speed)) {
    const auto [it, is_new] = index.emplace(group_of(plan_.cells[cell].key), groups.size());
    if (is_new) groups.emplace_back();
    groups[it->second].push_back(cell);
  }
  for (const auto& group : groups)
    if (!stopping()) run_group(group);
}

void Sweeper::run_group(const std::vector<size_t>& cells) {
  std::vector<Visits> visits;
  for (const size_t cell : cells) {
    visits.emplace_back();
    visits.back().cell = cell;
  }
  const CellKey& first = plan_.cells[cells[0]].key;
  const int64_t repetitions = first.axes.repetitions.value();
  const int64_t rounds = rounds_of(repetitions);
  Rng random = rng(order_seed_, "order " + group_of(first));
  const auto write = [&](Visits& visit, CellResult result) {
    result.order_seed = order_seed_;
    result.rounds = std::ssize(visit.sizes);
    result.noisy = visit.noisy;
    finish(visit.cell, result, visit.started_at, visit.seconds);
    visit.ended = true;
  };

  for (int64_t round = 0; round < rounds && !stopping(); round++) {
    for (const size_t i : shuffled(visits.size(), random)) {
      Visits& visit = visits[i];
      if (visit.ended || stopping()) continue;
      announce(fmt::format("{} round {}/{}", plan_.cells[visit.cell].label, round + 1, rounds));
      if (visit.started_at.empty()) visit.started_at = utc_now();
      Request request = measure_request(visit.cell, 1);
      request.repetitions = share(repetitions, rounds, round);
      const auto answer = visit_once(visit.cell, request, timeout_s_ - visit.seconds);
      if (!answer) break;  // interrupted: the cell stays without a row, and resuming begins it anew
      const auto& [reply, seconds, was_stopped] = *answer;
      visit.seconds += seconds;
      time_left_.spend(visit.cell, 1.0 / static_cast<double>(rounds), seconds);
      if (was_stopped) visit.noisy = {kStopped};
      if (!reply.is_ok()) {
        write(visit, {.status = reply.status, .reason = reply.reason});
        continue;
      }
      Visit found;
      if (const std::string fault = take_visit(reply, found); !fault.empty()) {
        write(visit, failed("a visit gave no times: " + fault));
        continue;
      }
      visit.times.insert(visit.times.end(), found.times.begin(), found.times.end());
      visit.sizes.push_back(std::ssize(found.times));
      if (std::ssize(visit.sizes) == rounds)
        write(visit, merged_speed(plan_.cells[visit.cell].key, visit.times, visit.sizes, found));
    }
  }
}

// A visit that was stopped is repeated, and the time that it took is not counted.
std::optional<Sweeper::Answer> Sweeper::visit_once(size_t cell, const Request& request,
                                                   double timeout_s) const {
  for (int repeats = 0;; repeats++) {
    ChildPool pool;
    pool.start(cell, child(request, std::max(0.001, timeout_s)));
    const auto ended = pool.wait();
    if (!ended) return std::nullopt;
    Answer answer{outcome_of(ended->second, timeout_s_), ended->second.seconds};
    answer.was_stopped =
        answer.reply.is_ok() && (answer.reply.was_stopped || ended->second.may_have_paused());
    if (!answer.was_stopped || repeats == kMostRepeats) return answer;
  }
}

CellResult Sweeper::merged_speed(const CellKey& key, const std::vector<double>& times,
                                 const std::vector<int64_t>& visits, const Visit& last) const {
  if (!std::all_of(times.begin(), times.end(), [](double time) { return time > 0; }))
    return failed("the clock gave no time for a run");
  const Summary time = summarize(times, visits, order_seed_);
  const double positions =
      key.axes.mode == Mode::decode ? 1 : static_cast<double>(key.axes.length.value());
  SpeedMetrics metrics{
      .time = time,
      .tokens_per_s = static_cast<double>(key.axes.batch.value()) * positions / time.median,
      .flops = last.flops,
      .flops_per_s = last.flops / time.median,
      .peak_fraction = std::nullopt,
      .bytes = last.bytes,
      .roofline_s = std::nullopt,
      .declares_cost = last.cost != CostSource::measured,
      .state_bytes = last.state_bytes};
  if (const std::optional<Calibration>& machine = result_.run.calibration) {
    const int threads = static_cast<int>(key.axes.threads.value());
    metrics.peak_fraction = metrics.flops_per_s / peak_of(*machine, threads);
    if (!(*metrics.peak_fraction <= 1))
      return failed(fmt::format(
          "{:.3g} FLOP/s would be {:.2f} of the machine's measured peak: the clock, the "
          "calibration or the cost formula is wrong",
          metrics.flops_per_s, *metrics.peak_fraction));
    if (last.bytes) metrics.roofline_s = roofline_of(*machine, threads, last.flops, *last.bytes);
  }
  return {.status = Status::ok,
          .reason = "",
          .metrics = metrics,
          .times = times,
          .curve = std::nullopt,
          .cost = last.cost,
          .visits = visits};
}

}  // namespace attn
