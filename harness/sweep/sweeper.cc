// The phases of a sweep: adopt, describe the run, write what is skipped, check contracts, measure;
// see sweep.h.
#include <algorithm>
#include <filesystem>

#include "core/base/check.h"
#include "core/simd/isa.h"
#include "harness/sweep/axes.h"
#include "harness/sweep/forecast.h"
#include "harness/sweep/key.h"
#include "harness/sweep/outcome.h"
#include "harness/sweep/pilots.h"
#include "harness/sweep/sweeper.h"

namespace attn {
namespace {

bool is_failure(const Json& row) { return row["status"] != "ok" && row["status"] != "skipped"; }

// What this variant was given, for the parity ledger of the tables.
Json ledger_of(const Json& key, const Json& reply) {
  const Json& metrics = reply["metrics"];
  Json ledger = {{"parameters", metrics.value("parameters", Json())},
                 {"flops", metrics.value("flops", Json())},
                 {"precision", "float32"},
                 {"threads", key["axes"].value("threads", Json())},
                 {"kernel", isa()},
                 {"loops", compiled_isa()}};
  if (reply.contains("cost")) ledger["cost"] = reply["cost"];
  return ledger;
}

std::string checked_output(const SweepRequest& request) {
  ATTN_CHECK(request.output == kStdoutPath || request.resume || request.force ||
                 !std::filesystem::exists(request.output),
             "'{}' exists; resume it, force a new start, or name another file", request.output);
  return request.output;
}

}  // namespace

Sweeper::Sweeper(const SweepRequest& request, const Plan& plan,
                 const std::function<void(const Progress&)>& report)
    : request_(request),
      plan_(plan),
      report_(report),
      writer_(checked_output(request), request.force),
      timeout_s_(timeout_of(request)),
      jobs_(jobs_of(request)),
      remaining_(plan, jobs_) {}

void Sweeper::adopt_existing() {
  std::map<std::string, const Json*> held;
  for (const Json& row : writer_.existing())
    if (row["kind"] == "cell") held[row["cell"].get<std::string>()] = &row;
  for (size_t i = 0; i < plan_.cells.size(); i++) {
    const auto it = held.find(plan_.cells[i].id);
    if (it == held.end()) continue;
    // A choice of tuning stands for others beside it; the same cell asked for alone does not.
    ATTN_CHECK(it->second->value("tuned", Json::array()) == Json(plan_.cells[i].tuned),
               "'{}' holds {} {}; name another output file, or --force to start over",
               request_.output, plan_.cells[i].label,
               plan_.cells[i].tuned.empty() ? "as a choice of --tune" : "without --tune");
    rows_[i] = *it->second;
    remaining_.drop(i);
    if (is_failure(rows_[i])) failures_++;
    if (rows_[i].value("gate", "") == "red") result_.gate_failed = true;
  }
}

std::vector<size_t> Sweeper::missing(std::string_view measure) const {
  std::vector<size_t> cells;
  for (size_t i = 0; i < plan_.cells.size(); i++)
    if (!rows_.count(i) && (measure.empty() || plan_.cells[i].key["measure"] == measure))
      cells.push_back(i);
  return cells;
}

bool Sweeper::stopping() const { return failed_fast_ || InterruptGuard::signal() != 0; }

void Sweeper::begin_phase(const std::string& name, size_t total) {
  phase_ = name;
  phase_total_ = total;
  announce(name);
}

Progress Sweeper::progress(const std::string& current) const {
  return {.done = rows_.size(),
          .total = plan_.cells.size(),
          .failures = failures_,
          .phase = phase_,
          .phase_total = phase_total_,
          .current = current,
          .seconds_left = remaining_.seconds_left()};
}

void Sweeper::announce(const std::string& current) const {
  if (report_) report_(progress(current));
}

void Sweeper::finish(size_t cell, const Json& reply, const std::string& started_at,
                     double duration_s) {
  Json row = sound_row(cell, reply, started_at, duration_s);
  writer_.append(row);
  if (is_failure(row)) {
    failures_++;
    failed_fast_ = failed_fast_ || request_.fail_fast;
  }
  rows_[cell] = std::move(row);
  remaining_.drop(cell);
  if (!report_) return;
  Progress now = progress(plan_.cells[cell].label);
  now.row = &rows_[cell];
  report_(now);
}

Json Sweeper::row_of(size_t cell, const Json& reply, const std::string& started_at,
                     double duration_s) const {
  const Json& key = plan_.cells[cell].key;
  const bool ok = reply["status"] == "ok";
  Json row = {
      {"schema", kSchema},
      {"kind", "cell"},
      {"run", result_.run["run"]},
      {"cell", plan_.cells[cell].id},
      {"status", reply["status"]},
      {"reason", reply["reason"]},
      {"measure", key["measure"]},
      {"variant", key["variant"]},
      {"task", key["task"]},
      {"axes", key["axes"]},
      {"metrics", ok ? reply.value("metrics", Json(nullptr)) : Json(nullptr)},
      {"samples",
       ok || reply["status"] == "diverged" ? reply.value("samples", Json(nullptr)) : Json(nullptr)},
      {"started_at", started_at},
      {"duration_s", duration_s},
      {"source", key["source"]}};
  if (ok && row["metrics"].is_object()) row["ledger"] = ledger_of(key, reply);
  if (!key["training"].is_null()) row["training"] = key["training"];
  if (!plan_.cells[cell].tuned.empty()) row["tuned"] = plan_.cells[cell].tuned;
  for (const char* extra : {"gate", "rounds", "visits", "order_seed"})
    if (reply.contains(extra)) row[extra] = reply[extra];
  return row;
}

Json Sweeper::sound_row(size_t cell, const Json& reply, const std::string& started_at,
                        double duration_s) const {
  std::string fault;
  try {
    Json row = row_of(cell, reply, started_at, duration_s);
    fault = schema_fault(row);
    if (fault.empty()) return row;
  } catch (const Json::exception& error) {  // a figure that is of another type
    fault = error.what();
  }
  return row_of(cell,
                {{"status", "failed"}, {"reason", "the result makes no row: " + one_line(fault)}},
                started_at, duration_s);
}

Json Sweeper::measure_request(size_t cell, int jobs) const {
  const int64_t most =
      request_.max_memory_bytes > 0 ? request_.max_memory_bytes : free_bytes_ / jobs;
  return {{"do", "measure"}, {"key", plan_.cells[cell].key}, {"max_memory_bytes", most}};
}

ChildSpec Sweeper::child(const Json& request, double timeout_s) const {
  return {request_.program, {"cell"}, request.dump(), timeout_s};
}

void Sweeper::run_pooled(std::vector<size_t> cells, int jobs) {
  // The first seed of all before the second, which tells early how long the others take; then the
  // longest first, so that none of them runs alone at the end.
  const auto order = [&](size_t cell) {
    const Json seed = plan_.cells[cell].key["axes"].value("seed", Json(0));
    return std::pair(seed.get<int64_t>(), -plan_.cells[cell].forecast_s);
  };
  if (jobs > 1)
    std::stable_sort(cells.begin(), cells.end(),
                     [&](size_t a, size_t b) { return order(a) < order(b); });
  ChildPool pool;
  std::map<size_t, std::string> started_at;
  size_t next = 0;
  while (!stopping() && (next < cells.size() || pool.running() > 0)) {
    while (next < cells.size() && pool.running() < static_cast<size_t>(jobs)) {
      const size_t cell = cells[next++];
      announce(plan_.cells[cell].label);
      started_at[cell] = utc_now();
      pool.start(cell, child(measure_request(cell, jobs), timeout_s_));
    }
    const auto ended = pool.wait();
    if (!ended) break;
    const auto& [cell, result] = *ended;
    remaining_.spend(cell, 1, result.seconds);
    finish(cell, reply_of(result, timeout_s_), started_at[cell], result.seconds);
  }
}

SweepResult Sweeper::run() {
  const InterruptGuard guard;
  adopt_existing();
  result_.reused = rows_.size();
  if (!missing("").empty()) {
    begin_run();
    for (const size_t cell : missing(""))
      if (const std::string& why = plan_.cells[cell].skip; !why.empty() && !stopping())
        finish(cell, {{"status", "skipped"}, {"reason", why}}, utc_now(), 0);
    if (!stopping()) check_contracts();
    for (const std::string& measure : all_measures()) {
      const std::vector<size_t> cells = missing(measure);
      if (stopping() || cells.empty()) continue;
      begin_phase(measure, cells.size());
      if (phase_ == "speed")
        run_speed();
      else
        run_pooled(cells, phase_ == "memory" ? 1 : jobs_);
    }
  } else {
    result_.run = writer_.existing().front();
  }
  for (auto& [cell, row] : rows_) result_.rows.push_back(std::move(row));
  result_.signal = InterruptGuard::signal();
  return std::move(result_);
}

SweepResult run_sweep(const SweepRequest& request, const Plan& plan,
                      const std::function<void(const Progress&)>& report) {
  return Sweeper(request, plan, report).run();
}

int exit_code(const SweepResult& result) {
  if (result.signal != 0) return 128 + result.signal;
  if (result.gate_failed) return 5;
  return std::any_of(result.rows.begin(), result.rows.end(), is_failure) ? 1 : 0;
}

}  // namespace attn
