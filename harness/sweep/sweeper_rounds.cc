// Speed cells: those that differ only in the variant are visited in turn, several rounds in random
// order, so that a machine that slows down or warms up does so for all of them.
#include "harness/sweep/rounds.h"

#include <algorithm>
#include <numeric>

#include "core/base/rng.h"
#include "harness/measure/calibrate.h"
#include "harness/measure/statistics.h"
#include "harness/sweep/key.h"
#include "harness/sweep/outcome.h"
#include "harness/sweep/sweeper.h"

namespace attn {
namespace {

// One cell of a group under way.
struct Visits {
  size_t cell = 0;
  std::vector<double> samples;
  std::vector<int64_t> sizes;  // of them, how many each visit gave
  Json reply;                  // the last one, for what does not change from visit to visit
  double seconds = 0;
  std::string started_at;
  bool ended = false;  // its row is written
};

// What a visit's reply lacks of what merging reads; "" where it is whole.
std::string visit_fault(const Json& reply) {
  const Json samples = reply.value("samples", Json(nullptr));
  if (!samples.is_array() || samples.empty()) return "samples: expected an array of times";
  for (const Json& sample : samples)
    if (!sample.is_number()) return fmt::format("samples: {} is no time", sample.dump());
  if (!reply.value("flops", Json(nullptr)).is_number()) return "flops: expected a number";
  for (const char* name : {"bytes", "state_bytes"})  // null: not declared
    if (reply.contains(name) && !reply[name].is_number() && !reply[name].is_null())
      return fmt::format("{}: expected a number", name);
  return "";
}

std::vector<size_t> shuffled(size_t count, Rng& random) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = count; i > 1; i--) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

Calibration calibration_of(const Json& json) {
  return {.fma_flops_per_s_one = json["fma_flops_per_s_one"],
          .fma_flops_per_s_all = json["fma_flops_per_s_all"],
          // Of a run line that is continued and was written before there was one of a thread: all.
          .copy_bytes_per_s_one = json.value("copy_bytes_per_s_one", json["copy_bytes_per_s"]),
          .copy_bytes_per_s = json["copy_bytes_per_s"],
          .threads = json["threads"]};
}

int64_t share(int64_t total, int64_t rounds, int64_t round) {
  return (total + rounds - 1 - round) / rounds;
}

}  // namespace

void Sweeper::run_speed() {
  std::vector<std::vector<size_t>> groups;
  std::map<std::string, size_t> index;
  for (const size_t cell : missing("speed")) {
    const auto [it, is_new] = index.emplace(group_of(plan_.cells[cell].key).dump(), groups.size());
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
  const int64_t repetitions = plan_.cells[cells[0]].key["axes"]["repetitions"];
  const int64_t rounds = rounds_of(repetitions);
  Rng random = rng(order_seed_, "order " + hash_of(group_of(plan_.cells[cells[0]].key)));
  const auto write = [&](Visits& visit, Json reply) {
    reply["order_seed"] = order_seed_;
    reply["rounds"] = std::ssize(visit.sizes);
    finish(visit.cell, reply, visit.started_at, visit.seconds);
    visit.ended = true;
  };

  for (int64_t round = 0; round < rounds && !stopping(); round++) {
    for (const size_t i : shuffled(visits.size(), random)) {
      Visits& visit = visits[i];
      if (visit.ended || stopping()) continue;
      announce(fmt::format("{} round {}/{}", plan_.cells[visit.cell].label, round + 1, rounds));
      if (visit.started_at.empty()) visit.started_at = utc_now();
      Json request = measure_request(visit.cell, 1);
      request["repetitions"] = share(repetitions, rounds, round);
      ChildPool pool;
      pool.start(visit.cell, child(request, std::max(0.001, timeout_s_ - visit.seconds)));
      const auto ended = pool.wait();
      if (!ended) break;  // interrupted: the cell stays without a row, and resuming begins it anew
      visit.seconds += ended->second.seconds;
      remaining_.spend(visit.cell, 1.0 / static_cast<double>(rounds), ended->second.seconds);
      Json reply = reply_of(ended->second, timeout_s_);
      if (reply["status"] == "ok")
        if (const std::string fault = visit_fault(reply); !fault.empty())
          reply = {{"status", "failed"}, {"reason", "a visit gave no times: " + fault}};
      if (reply["status"] != "ok") {
        write(visit, reply);
        continue;
      }
      for (const Json& sample : reply["samples"]) visit.samples.push_back(sample);
      visit.sizes.push_back(static_cast<int64_t>(reply["samples"].size()));
      visit.reply = std::move(reply);
      if (std::ssize(visit.sizes) == rounds)
        write(visit, merged_speed(visit.cell, visit.samples, visit.sizes, visit.reply));
    }
  }
}

Json Sweeper::merged_speed(size_t cell, const std::vector<double>& samples,
                           const std::vector<int64_t>& visits, const Json& reply) const {
  const Json& axes = plan_.cells[cell].key["axes"];
  const double flops = reply["flops"];
  if (!std::all_of(samples.begin(), samples.end(), [](double sample) { return sample > 0; }))
    return {{"status", "failed"}, {"reason", "the clock gave no time for a run"}};
  const Summary time = summarize(samples, visits, order_seed_);
  Json fraction = nullptr, roofline = nullptr;
  if (const Json& calibration = result_.run["environment"]["calibration"]; !calibration.is_null()) {
    const Calibration machine = calibration_of(calibration);
    const double peak = peak_of(machine, axes["threads"]);
    const double reached = flops / time.median / peak;
    if (!(reached <= 1))
      return {{"status", "failed"},
              {"reason",
               fmt::format(
                   "{:.3g} FLOP/s would be {:.2f} of the machine's measured peak: the clock, the "
                   "calibration or the cost formula is wrong",
                   flops / time.median, reached)}};
    fraction = reached;
    if (reply.value("bytes", Json()).is_number())
      roofline = roofline_of(machine, axes["threads"], flops, reply["bytes"]);
  }
  const double positions = axes["mode"] == "decode" ? 1 : axes["length"].get<double>();
  Json metrics = {{"time_s",
                   {{"median", time.median},
                    {"mean", time.mean},
                    {"min", time.min},
                    {"mad", time.mad},
                    {"ci_low", time.ci_low},
                    {"ci_high", time.ci_high},
                    {"n", time.n}}},
                  {"tokens_per_s", axes["batch"].get<double>() * positions / time.median},
                  {"flops", flops},
                  {"flops_per_s", flops / time.median},
                  {"peak_fraction", fraction}};
  if (reply.contains("bytes")) {
    metrics["bytes"] = reply["bytes"];
    metrics["roofline_s"] = roofline;
  }
  if (reply.contains("state_bytes")) metrics["state_bytes"] = reply["state_bytes"];
  Json merged = {{"status", "ok"},
                 {"reason", nullptr},
                 {"metrics", std::move(metrics)},
                 {"samples", samples},
                 {"visits", visits}};
  if (reply.contains("cost")) merged["cost"] = reply["cost"];
  return merged;
}

}  // namespace attn
