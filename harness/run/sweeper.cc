// The phases of a sweep: adopt, describe the run, write what is skipped, check contracts, measure;
// see run.h.
#include <algorithm>
#include <filesystem>

#include "core/base/check.h"
#include "core/simd/bfloat16_product.h"
#include "core/simd/isa.h"
#include "core/simd/quantised_product.h"
#include "harness/cell/codec.h"
#include "harness/plan/forecast.h"
#include "harness/plan/python_variants.h"
#include "harness/plan/total_time.h"
#include "harness/process/outcome.h"
#include "harness/run/run.h"
#include "harness/run/run_line.h"
#include "harness/run/sweeper.h"
#include "tasks/catalog.h"
#include "variants/catalog.h"

namespace attn {
namespace {

// What this variant was given, for the parity ledger of the tables.
Ledger ledger_of(const CellKey& key, const CellResult& result) {
  Ledger ledger{.precision = "float32",
                .threads = key.axes.threads,
                .kernel = isa(),
                .loops = compiled_isa(),
                .cost = result.cost};
  if (result.dtype && result.dtype->path == DtypePath::native) {
    ledger.precision = name_of(result.dtype->name);
    ledger.kernel = bfloat16_isa();
  }
  if (key.axes.kv_dtype)
    ledger.kernel = keeps_recent(*key.axes.kv_dtype) ? quantised_isa() : bfloat16_isa();
  if (const auto* speed = std::get_if<SpeedMetrics>(&result.metrics)) ledger.flops = speed->flops;
  if (const auto* fidelity = std::get_if<FidelityMetrics>(&result.metrics))
    ledger.flops = fidelity->flops;
  if (result.sizes) ledger.parameters = result.sizes->parameters;
  if (const auto* accuracy = std::get_if<AccuracyMetrics>(&result.metrics)) {
    ledger.parameters = accuracy->parameters;
    ledger.flops = accuracy->flops;
  }
  return ledger;
}

bool is_retried(const std::set<std::string>& retry, const Row& row) {
  return (row.is_failure() && retry.count("failed")) || retry.count(name_of(row.result.status)) ||
         (!row.result.noisy.empty() && retry.count("noisy"));
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
      time_left_(plan, jobs_) {
  if (request.twin.empty()) return;
  twin_writer_.emplace(request.twin);
  ATTN_CHECK(writer_.existing().empty() && twin_writer_->existing().empty(),
             "'{}' or '{}' holds rows; cells that are measured twice go to two new files",
             request.output, request.twin);
}

void Sweeper::adopt_existing() {
  std::map<std::string, std::pair<std::string, const Row*>> held;  // file and row, by cell
  for (const auto& [path, row] : held_scores_) held[row.cell] = {path, &row};
  for (const Row& row : held_rows_) held[row.cell] = {request_.output, &row};
  for (size_t i = 0; i < plan_.cells.size(); i++) {
    const auto it = held.find(plan_.cells[i].id);
    if (it == held.end()) continue;
    const auto& [path, row] = it->second;
    if (path == request_.output && is_retried(request_.retry, *row)) {
      retried_.insert(it->first);
      continue;
    }
    // A choice of tuning stands for others beside it; the same cell asked for alone does not.
    const char* const advice = path == request_.output
                                   ? "name another output file, or --force to start over"
                                   : "leave it out of --held";
    ATTN_CHECK(row->tuned == plan_.cells[i].tuned, "'{}' holds {} {}; {}", path,
               plan_.cells[i].label,
               plan_.cells[i].tuned.empty() ? "as a choice of --tune" : "without --tune", advice);
    ATTN_CHECK(row->trial.has_value() == plan_.cells[i].trial.has_value(), "'{}' holds {} {}; {}",
               path, plan_.cells[i].label,
               plan_.cells[i].trial ? "as a result" : "as a trial of a search", advice);
    rows_[i] = *row;
    rows_[i].key = plan_.cells[i].key;  // the same by its id, and whole
    time_left_.drop(i);
    if (rows_[i].is_failure()) failures_++;
    if (rows_[i].result.is_gated) result_.gate_failed = true;
  }
}

std::vector<size_t> Sweeper::missing(std::optional<Measure> measure) const {
  std::vector<size_t> cells;
  for (size_t i = 0; i < plan_.cells.size(); i++)
    if (!rows_.count(i) && (!measure || plan_.cells[i].key.measure == *measure)) cells.push_back(i);
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
          .seconds_left = time_left_.seconds_left()};
}

void Sweeper::announce(const std::string& current) const {
  if (report_) report_(progress(current));
}

void Sweeper::finish(size_t cell, const CellResult& result, const std::string& started_at,
                     double duration_s) {
  Row row = make_row(cell, result, started_at, duration_s);
  Json line = to_json(row);
  if (const std::string fault = schema_fault(line); !fault.empty()) {
    const CellResult no_row{.status = Status::failed,
                            .reason = "the result makes no row: " + one_line(fault)};
    row = make_row(cell, no_row, started_at, duration_s);
    line = to_json(row);
  }
  (plan_.cells[cell].is_twin ? twin_writer_.value() : writer_).append(line);
  result_.gate_failed = result_.gate_failed || row.result.is_gated;
  if (row.is_failure()) {
    failures_++;
    failed_fast_ = failed_fast_ || request_.fail_fast;
  }
  rows_[cell] = std::move(row);
  time_left_.drop(cell);
  if (!report_) return;
  Progress now = progress(plan_.cells[cell].label);
  now.row = &rows_[cell];
  report_(now);
}

Row Sweeper::make_row(size_t cell, const CellResult& result, const std::string& started_at,
                      double duration_s) const {
  const Cell& planned = plan_.cells[cell];
  Row row{.run = planned.is_twin ? twin_run_ : result_.run.run,
          .cell = planned.id,
          .key = planned.key,
          .result = result,
          .started_at = started_at,
          .duration_s = duration_s,
          .tuned = planned.tuned,
          .trial = planned.trial,
          .search = planned.search,
          .ledger = std::nullopt,
          .referenced = variant_of(planned.key.variant).is_referenced()};
  row.plugin = variant_plugin(planned.key.variant.name);
  if (row.plugin.empty() && planned.key.task) row.plugin = task_plugin(planned.key.task->name);
  if (!row.plugin.empty()) row.provided_by = "plugin";
  if (row.is_ok()) row.ledger = ledger_of(planned.key, result);
  if (const PythonVariant* const python = python_variant(planned.key.variant.name)) {
    row.provided_by = kByPython;
    if (row.ledger) row.ledger->kernel = kernel_of(*python);
  }
  return row;
}

Request Sweeper::measure_request(size_t cell, int jobs) {
  const int64_t most = memory_of_each(jobs, request_.max_memory_bytes, free_bytes_);
  const CellKey& key = plan_.cells[cell].key;
  Request request{.what = Asked::measure, .key = key, .max_memory_bytes = most};
  if (reads_model(key)) {
    if (!folder_) folder_.emplace();
    request.folder = folder_->path();
  }
  return request;
}

ChildSpec Sweeper::child(const Request& request, double timeout_s) const {
  return cell_process(request_.program, request, timeout_s);
}

std::vector<size_t> Sweeper::in_order_of_learning(std::vector<size_t> cells) const {
  std::stable_sort(cells.begin(), cells.end(), [&](size_t a, size_t b) {
    return plan_.cells[a].forecast_s > plan_.cells[b].forecast_s;
  });
  // Of one seed on one task, a cell's rank by its length.
  std::map<std::pair<int64_t, std::string>, size_t> counts;
  std::map<size_t, std::pair<int64_t, size_t>> order;  // cell -> seed, rank
  for (const size_t cell : cells) {
    const CellKey& key = plan_.cells[cell].key;
    const int64_t seed = key.axes.seed.value_or(0);
    order[cell] = {seed, counts[{seed, key.task ? plugin_text(*key.task) : ""}]++};
  }
  std::stable_sort(cells.begin(), cells.end(),
                   [&](size_t a, size_t b) { return order[a] < order[b]; });
  return cells;
}

void Sweeper::run_pooled(std::vector<size_t> cells, int jobs) {
  cells = in_order_of_learning(cells);
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
    time_left_.spend(cell, 1, result.seconds);
    const Measure measure = plan_.cells[cell].key.measure;
    const Reply reply = outcome_of(result, timeout_s_);
    CellResult found = result_of(reply, measure);
    // A training is too long to be repeated for its times, and other figures here have none.
    if (measure == Measure::accuracy &&
        (reply.was_stopped || (reply.is_ok() && result.may_have_paused())))
      found.noisy = {Noise::stopped};
    finish(cell, found, started_at[cell], result.seconds);
  }
}

SweepResult Sweeper::run() {
  const InterruptGuard guard;
  read_existing();
  read_held();
  adopt_existing();
  result_.reused = rows_.size();
  if (!missing().empty() || held_runs_.empty()) {  // a file begins with the run, if all is held too
    begin_run();
    for (const size_t cell : missing())
      if (const std::string& why = plan_.cells[cell].skip; !why.empty() && !stopping())
        finish(cell, {.status = Status::skipped, .reason = why}, utc_now(), 0);
    if (!stopping()) check_contracts();
    for (const Measure measure : kMeasures) {
      const std::vector<size_t> cells = missing(measure);
      if (stopping() || cells.empty()) continue;
      begin_phase(name_of(measure), cells.size());
      if (measure == Measure::speed)
        run_speed();
      else
        run_pooled(cells, runs_alone(measure) ? 1 : jobs_);
    }
  } else {
    result_.run = held_runs_.front();
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
  const bool failed = std::any_of(result.rows.begin(), result.rows.end(),
                                  [](const Row& row) { return row.is_failure(); });
  return failed ? 1 : 0;
}

}  // namespace attn
