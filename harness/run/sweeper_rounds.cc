// Speed cells: those that differ only in the variant are visited in turn, several rounds in random
// order, so that a machine that slows down or warms up does so for all of them.
#include <algorithm>
#include <numeric>

#include "core/base/check.h"
#include "core/base/parallel.h"
#include "core/base/rng.h"
#include "harness/cell/codec.h"
#include "harness/measure/calibrate.h"
#include "harness/plan/pinning.h"
#include "harness/plan/rounds.h"
#include "harness/process/outcome.h"
#include "harness/run/noisy.h"
#include "harness/run/speed_cell.h"
#include "harness/run/sweeper.h"

namespace attn {
namespace {

// How often a visit is repeated that was stopped in mid-measurement. If each repeat is stopped too,
// the row is marked as noisy.
constexpr int kMostRepeats = 3;
// A visit whose witness fell is made again, at most one in so many: on a machine that is always
// disturbed, the sweep must not take twice the time.
constexpr int64_t kVisitsARepeat = 10;

std::vector<size_t> shuffled(size_t count, Rng& random) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = count; i > 1; i--) std::swap(order[i - 1], order[random.below(i)]);
  return order;
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

// Of `total` repetitions in `rounds` visits; a visit beyond them is as long as the first.
int64_t share(int64_t total, int64_t rounds, int64_t round) {
  const int64_t place = round < rounds ? round : 0;
  return (total + rounds - 1 - place) / rounds;
}

bool is_memory_bound(const Visit& visit, const std::optional<Calibration>& machine, int threads) {
  return machine && visit.bytes &&
         *visit.bytes / bandwidth_of(*machine, threads) > visit.flops / peak_of(*machine, threads);
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
  const CellKey& first = plan_.cells[cells[0]].key;
  const int64_t repetitions = first.axes.repetitions.value();
  const int64_t rounds = rounds_of(repetitions);
  std::vector<SpeedCell> group;
  for (const size_t cell : cells)
    group.emplace_back(cell, plan_.cells[cell].key,
                       Stopping(rounds, request_.precision, request_.max_time_s), rounds,
                       request_.precision > 0 ? 0 : request_.max_time_s);
  Rng random = rng(order_seed_, "order " + group_of(first));
  const auto is_open = [](const SpeedCell& cell) { return !cell.is_done; };
  for (int64_t round = 0; !stopping() && std::any_of(group.begin(), group.end(), is_open);
       round++) {
    for (const size_t i : shuffled(group.size(), random)) {
      SpeedCell& cell = group[i];
      if (cell.is_done || stopping()) continue;
      const std::string of = round < rounds ? fmt::format("/{}", rounds) : "";
      announce(fmt::format("{} round {}{}", plan_.cells[cell.cell].label, round + 1, of));
      visit(cell, share(repetitions, rounds, round),
            round < rounds ? 1.0 / static_cast<double>(rounds) : 0);
    }
  }
}

void Sweeper::visit(SpeedCell& cell, int64_t repetitions, double fraction) {
  if (cell.started_at.empty()) cell.started_at = utc_now();
  const auto write = [&](CellResult result) {
    finish(cell.cell, cell.marked(std::move(result), order_seed_, hardware_threads()),
           cell.started_at, cell.seconds);
    cell.is_done = true;
  };
  Request request = measure_request(cell.cell, 1);
  request.repetitions = repetitions;
  request.cpus = cpus_of(plan_.cells[cell.cell].key);
  cell.cpus = request.cpus;
  request.breakdown = request_.breakdown;
  request.draw = ++cell.draws;
  std::optional<Visit> kept;
  bool kept_was_stopped = false;
  for (bool is_repeat = false;; is_repeat = true) {
    // With a precision or a time, the number of visits is open: the limit is that of a visit.
    const bool is_open = request_.precision > 0 || request_.max_time_s > 0;
    const double left = is_open ? timeout_s_ : timeout_s_ - cell.seconds;
    const auto answer = visit_once(cell.cell, request, left);
    if (!answer) return;  // interrupted: the cell stays without a row, and resuming begins it anew
    const auto& [reply, seconds, was_stopped] = *answer;
    cell.seconds += seconds;
    visits_++;
    time_left_.spend(cell.cell, is_repeat ? 0 : fraction, seconds);
    if (!reply.is_ok())
      return write(
          {.status = reply.row_status(), .reason = reply.reason, .is_gated = reply.is_wrong});
    Visit found;
    if (const std::string fault = take_visit(reply, found); !fault.empty())
      return write({.status = Status::failed, .reason = "a visit gave no times: " + fault});
    const bool repeats_worse = kept && kept->witness && found.witness &&
                               found.witness->flops_per_s < kept->witness->flops_per_s;
    if (!repeats_worse) {
      kept = found;
      kept_was_stopped = was_stopped;
    }
    if (is_repeat || !witness_fell(cell.cell, *kept) || (repeats_ + 1) * kVisitsARepeat > visits_)
      break;
    cell.repeats++;
    repeats_++;
  }
  const bool fell = witness_fell(cell.cell, *kept);
  cell.add({.visit = *kept,
            .was_stopped = kept_was_stopped,
            .fell = fell,
            .is_disturbed =
                kept_was_stopped ||
                !noise_of(fell, kept->disturbance.value_or(Disturbance{}),
                          plan_.cells[cell.cell].key.axes.threads.value(), hardware_threads())
                     .empty()});
  const auto& machine = result_.run.calibration;
  if (cell.end(order_seed_)) write(cell.result(order_seed_, machine ? &*machine : nullptr));
}

bool Sweeper::witness_fell(size_t cell, const Visit& visit) {
  if (!visit.witness) return false;
  const int threads = static_cast<int>(plan_.cells[cell].key.axes.threads.value());
  Witness& best = best_witness_[threads];
  best.flops_per_s = std::max(best.flops_per_s, visit.witness->flops_per_s);
  best.copy_bytes_per_s = std::max(best.copy_bytes_per_s, visit.witness->copy_bytes_per_s);
  return fell(*visit.witness, best, is_memory_bound(visit, result_.run.calibration, threads));
}

std::vector<int64_t> Sweeper::cpus_of(const CellKey& key) const {
  const int threads = static_cast<int>(key.axes.threads.value());
  const std::vector<int> chosen = pinned_cpus(request_.pin, threads);
  return {chosen.begin(), chosen.end()};
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

}  // namespace attn
