// The run line of a sweep: what was asked, on which machine, and how fast that machine is. A file
// that holds one already must come from the same machine, build and sources; see run.h.
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "core/base/check.h"
#include "core/base/parallel.h"
#include "harness/cell/codec.h"
#include "harness/cell/source_hash.h"
#include "harness/plan/forecast.h"
#include "harness/plan/profiles.h"
#include "harness/plan/python_variants.h"
#include "harness/process/outcome.h"
#include "harness/run/noise_floors.h"
#include "harness/run/protocol.h"
#include "harness/run/run_line.h"
#include "harness/run/sweeper.h"
#include "variants/catalog.h"

namespace attn {
namespace {

constexpr size_t kMostShown = 80;                 // characters of a value in a message
constexpr const char* kSweepFile = "sweep_file";  // members of `config`
constexpr const char* kFind = "find";
constexpr double kCalibrationTimeout = 120;  // seconds; it takes a few

// Where two values of this name part first, as "environment.commit: 1a2b… there, 3c4d… here"; ""
// when they are the same.
std::string difference(const Json& there, const Json& here, const std::string& name) {
  if (there == here) return {};
  if (there.is_object() && here.is_object())
    for (const auto& [key, value] : here.items()) {
      const std::string found =
          difference(there.value(key, Json(nullptr)), value, name + "." + key);
      if (!found.empty()) return found;
    }
  std::string old_text = there.is_null() ? "nothing" : there.dump();
  std::string new_text = here.is_null() ? "nothing" : here.dump();
  const bool is_long = std::max(old_text.size(), new_text.size()) > kMostShown;
  if (there.is_array() && here.is_array() && (there.size() == here.size() || is_long))
    for (size_t i = 0; i < std::max(there.size(), here.size()); i++) {
      const auto at = [&](const Json& list) { return i < list.size() ? list[i] : Json(nullptr); };
      const std::string found = difference(at(there), at(here), fmt::format("{}[{}]", name, i));
      if (!found.empty()) return found;
    }
  const size_t same = static_cast<size_t>(
      std::mismatch(old_text.begin(), old_text.end(), new_text.begin(), new_text.end()).first -
      old_text.begin());
  for (std::string* text : {&old_text, &new_text}) {
    if (is_long && same > kMostShown / 2) *text = "..." + text->substr(same - kMostShown / 4);
    if (text->size() > kMostShown) *text = text->substr(0, kMostShown) + "...";
  }
  return fmt::format("{}: {} there, {} here", name, old_text, new_text);
}

// What a run line says beside what was resolved.
std::string beside(const std::string& sweep_file, const std::string& find, const Json& protocol) {
  return fmt::format("{}\n{}\n{}", protocol.dump(), find, sweep_file);
}

// The sources behind the rows that the file holds must be those of this program.
void require_same_sources(const std::string& path, const std::vector<Row>& rows) {
  const auto require = [&](const std::string& recorded, const char* folder,
                           const std::string& name) {
    const std::string here = source_hash(folder, name);
    ATTN_CHECK(recorded.empty() || !here.empty(),
               "'{}' has rows of {}, which is not loaded; name its plug-in (--plugin FILE.so, or "
               "--plugin python:FILE.py:NAME), or another output file, or --force to start over",
               path, name);
    ATTN_CHECK(recorded.empty() || recorded == here,
               "'{}' was measured with other sources of {}; name another output file, or --force "
               "to start over",
               path, name);
  };
  for (const Row& row : rows) {
    require(row.key.source.variant, "variants", row.key.variant.name);
    if (row.key.task) require(row.key.source.task, "tasks", row.key.task->name);
    if (const PythonVariant* const python = python_variant(row.key.variant.name);
        python && row.ledger)
      ATTN_CHECK(row.ledger->kernel == kernel_of(*python),
                 "'{}' has rows of {} that ran in {}, and this is {}; name another output file, or "
                 "--force to start over",
                 path, python->name, row.ledger->kernel, kernel_of(*python));
  }
}

// The floors that a sweep's speed cells can be held to.
NoiseFloor floors_for(const Plan& plan, const NoiseFloor& known) {
  NoiseFloor floors;
  std::copy_if(known.begin(), known.end(), std::back_inserter(floors), [&](const FloorAt& floor) {
    return std::any_of(plan.cells.begin(), plan.cells.end(), [&](const Cell& cell) {
      return cell.key.measure == Measure::speed && cell.key.axes.mode == floor.mode &&
             cell.key.axes.threads == floor.threads;
    });
  });
  return floors;
}

void list_variant(const VariantInfo& info, std::vector<ListedVariant>& list) {
  const bool is_listed = std::any_of(list.begin(), list.end(), [&](const ListedVariant& other) {
    return other.name == info.name;
  });
  if (is_listed) return;
  std::optional<Params> defaults;
  if (info.name.find('+') == std::string::npos) defaults = defaults_in_rows(info);
  list.push_back({info.name, std::ssize(list), info.family, std::move(defaults)});
}

// `list`, the catalogue and the stacks of the plan.
std::vector<ListedVariant> listed_variants(const Plan& plan, std::vector<ListedVariant> list = {}) {
  for (const VariantInfo& info : all_variants()) list_variant(info, list);
  for (const Cell& cell : plan.cells) list_variant(find_variant(cell.key.variant.name), list);
  return list;
}

}  // namespace

void Sweeper::read_existing() {
  size_t number = 0;
  for (const Json& line : writer_.existing()) try {
      number++;
      if (is_cell(line))
        held_rows_.push_back(row_of(line));
      else
        hold_run(line);
    } catch (const Error& error) {
      throw_error(fmt::format(
          "{}:{}: not a line of this version of the program ({}); name another output file, or "
          "--force to start over",
          request_.output, number, one_line(error.what())));
    }
}

// Another machine rounds differently, so that the same training gives another score there. The id
// of a cell hashes the sources, so that both scores are of one variant and task. Rows of any status
// count, as those of the output do, so that no cell is in two of the files.
void Sweeper::read_held() {
  for (const std::string& path : request_.held) {
    size_t number = 0;
    for (const Json& line : read_rows(path, true)) try {
        number++;
        if (!is_cell(line)) continue;
        Row row = row_of(line);
        if (row.key.measure == Measure::accuracy) held_scores_.emplace_back(path, std::move(row));
      } catch (const Error& error) {
        throw_error(fmt::format("{}:{}: not a line of this version of the program ({})", path,
                                number, one_line(error.what())));
      }
  }
}

void Sweeper::hold_run(const Json& line) {
  held_runs_.push_back(run_line_of(line));
  const auto text_of_member = [&](const char* name) {
    const auto text = line["config"].find(name);
    return text != line["config"].end() && text->is_string() ? text->get<std::string>() : "";
  };
  held_beside_.push_back(beside(text_of_member(kSweepFile), text_of_member(kFind),
                                line.value(kProtocolField, Json())));
}

// The text of a sweep file stands in `config`, beside what was resolved from it, and so does what
// is searched for. The protocol stands by itself: readers of rows look there for what the sweep
// departs in.
Json Sweeper::line_of(const RunLine& run) const {
  Json line = to_json(run);
  line[kProtocolField] = protocol_of(request_);
  if (request_.sweep_file) line["config"][kSweepFile] = request_.sweep_file->text;
  if (!request_.find.empty()) line["config"][kFind] = request_.find;
  for (const PythonVariant& python : python_variants())
    line["config"]["python"].push_back({{"variant", python.name},
                                        {"file", python.file},
                                        {"name", python.attribute},
                                        {"hash", python.hash},
                                        {"python", python.python},
                                        {"torch", python.torch}});
  return line;
}

void Sweeper::set_pace_of(const RunLine& run) {
  if (run.calibration)
    time_left_.set_training_pace(kForecastPeak / run.calibration->fma_flops_per_s_one);
}

// A file of the same machine, build and sources goes on as its run. Where this sweep is not one of
// those that its run lines describe, a further run line of the same id describes it.
bool Sweeper::continue_run(const RunLine& run) {
  if (held_runs_.empty()) return false;
  result_.run = held_runs_.front();
  const std::string other =
      difference(machine_of(result_.run.environment), machine_of(run.environment), "environment");
  ATTN_CHECK(other.empty(),
             "'{}' was measured elsewhere ({}); name another output file, or --force to start over",
             request_.output, other);
  ATTN_CHECK(result_.run.config.protocol == run.config.protocol,
             "'{}' was measured in another way (protocol {}, now {}); name another output file, or "
             "--force to start over",
             request_.output, result_.run.config.protocol, run.config.protocol);
  require_same_sources(request_.output, held_rows_);
  order_seed_ = result_.run.order_seed;
  set_pace_of(result_.run);
  if (!retried_.empty()) writer_.drop(retried_);
  const std::string wanted = beside(request_.sweep_file ? request_.sweep_file->text : "",
                                    request_.find, protocol_of(request_));
  bool is_known = false;
  for (size_t i = 0; i < held_runs_.size(); i++)
    is_known |= held_beside_[i] == wanted && held_runs_[i].config.asks_the_same(run.config);
  if (!is_known) {
    RunLine wider = result_.run;
    wider.argv = run.argv;
    wider.config = run.config;
    wider.started_at = run.started_at;
    wider.variants = listed_variants(plan_, std::move(wider.variants));
    writer_.append(line_of(wider));
  }
  return true;
}

void Sweeper::begin_run() {
  free_bytes_ = free_memory();
  RunLine run{.run = "",
              .argv = request_.argv,
              .config = plan_.config,
              .environment = environment_json(),
              .calibration = std::nullopt,
              .calibration_fault = "",
              .started_at = utc_now(),
              .variants = listed_variants(plan_),
              .noise_floor = floors_for(plan_, kept_floors(request_.noise))};
  if (continue_run(run)) return;
  begin_phase("calibration", 0);
  ChildPool pool;
  pool.start(0,
             child({.what = Asked::calibrate, .threads = hardware_threads()}, kCalibrationTimeout));
  if (const auto ended = pool.wait()) {
    const Reply reply = outcome_of(ended->second, kCalibrationTimeout);
    run.calibration = found_in(reply, calibration_of);
    if (!run.calibration)
      run.calibration_fault = reply.is_ok() ? "the reply holds no calibration" : reply.reason;
    set_pace_of(run);
  }
  run.run = hash_of({to_json(run), getpid()});
  order_seed_ = std::stoull(run.run, nullptr, 16) >> 12;  // 52 bits: exact in every JSON reader
  run.order_seed = order_seed_;
  if (const std::string fault = schema_fault(to_json(run)); !fault.empty()) {
    run.calibration.reset();
    run.calibration_fault = fault;
  }
  if (!stopping()) write_runs(run);
  result_.run = std::move(run);
}

void Sweeper::write_runs(const RunLine& run) {
  writer_.append(line_of(run));
  if (!twin_writer_) return;
  RunLine twin = run;
  twin.run = hash_of({run.run, "twin"});
  twin_run_ = twin.run;
  twin_writer_->append(line_of(twin));
}

}  // namespace attn
