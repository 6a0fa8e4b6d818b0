// The run line of a sweep: what was asked, on which machine, and how fast that machine is. A file
// that holds one already must come from the same machine, build and sources; see sweep.h.
#include <unistd.h>

#include <algorithm>

#include "core/base/check.h"
#include "core/base/parallel.h"
#include "harness/sweep/forecast.h"
#include "harness/sweep/key.h"
#include "harness/sweep/outcome.h"
#include "harness/sweep/run_line.h"
#include "harness/sweep/sweeper.h"
#include "variants/catalog.h"

namespace attn {
namespace {

constexpr size_t kMostShown = 80;            // characters of a value in a message
constexpr double kCalibrationTimeout = 120;  // seconds; it takes a few

// The part of a run line that tells one machine and build from another.
Json machine_of(const Json& run) {
  Json environment = run["environment"];
  for (const char* passing : {"load_before", "calibration", "calibration_fault"})
    environment.erase(passing);
  return {{"environment", environment}};
}

// What was asked for, without the limits.
Json question_of(const Json& run) {
  Json config = run["config"];
  for (const char* limit : {"jobs", "timeout_s", "max_memory_bytes", "shard"}) config.erase(limit);
  return config;
}

// Where two identities part first, as "environment.commit: 1a2b… there, 3c4d… here"; "" when they
// are the same.
std::string difference(const Json& there, const Json& here, const std::string& name) {
  if (there == here) return {};
  if (there.is_object() && here.is_object())
    for (const auto& [key, value] : here.items()) {
      const std::string inside = name.empty() ? key : name + "." + key;
      const std::string found = difference(there.value(key, Json(nullptr)), value, inside);
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

// The sources behind the rows that the file holds must be those of this program.
void require_same_sources(const std::string& path, const std::vector<Json>& rows) {
  for (const Json& row : rows) {
    if (row["kind"] != "cell" || !row.contains("source")) continue;
    for (const char* folder : {"variant", "task"}) {
      if (!row["source"].contains(folder)) continue;
      const std::string name = row[folder]["name"];
      ATTN_CHECK(row["source"][folder] == source_hash(fmt::format("{}s", folder), name),
                 "'{}' was measured with other sources of {}; name another output file, or --force "
                 "to start over",
                 path, name);
    }
  }
}

Json variants_json() {
  Json list = Json::array();
  for (const VariantInfo& info : all_variants())
    list.push_back({{"name", info.name}, {"order", list.size()}, {"family", info.family}});
  return list;
}

}  // namespace

void Sweeper::set_pace_of(const Json& run) {
  if (const Json& found = run["environment"]["calibration"]; found.is_object())
    remaining_.set_training_pace(kForecastPeak / found["fma_flops_per_s_one"].get<double>());
}

// A file of the same machine, build and sources goes on as its run. Where this sweep is not one of
// those that its run lines describe, a further run line of the same id describes it.
bool Sweeper::continue_run(const Json& run) {
  const std::vector<Json>& held = writer_.existing();
  if (held.empty()) return false;
  result_.run = held.front();
  const std::string other = difference(machine_of(result_.run), machine_of(run), "");
  ATTN_CHECK(other.empty(),
             "'{}' was measured elsewhere ({}); name another output file, or --force to start over",
             request_.output, other);
  ATTN_CHECK(result_.run["config"]["protocol"] == run["config"]["protocol"],
             "'{}' was measured in another way (protocol {}, now {}); name another output file, or "
             "--force to start over",
             request_.output, result_.run["config"]["protocol"].dump(),
             run["config"]["protocol"].dump());
  require_same_sources(request_.output, held);
  order_seed_ = result_.run.value("order_seed", uint64_t{0});
  set_pace_of(result_.run);
  const bool is_known = std::any_of(held.begin(), held.end(), [&](const Json& row) {
    return row["kind"] == "run" && question_of(row) == question_of(run);
  });
  if (!is_known) {
    Json wider = result_.run;
    for (const char* own : {"argv", "config", "started_at"}) wider[own] = run[own];
    writer_.append(wider);
  }
  return true;
}

void Sweeper::begin_run() {
  free_bytes_ = free_memory();
  Json run = {{"schema", kSchema},
              {"kind", "run"},
              {"run", ""},
              {"argv", request_.argv},
              {"config", plan_.config},
              {"environment", environment_json()},
              {"started_at", utc_now()},
              {"variants", variants_json()}};
  if (continue_run(run)) return;
  begin_phase("calibration", 0);
  ChildPool pool;
  pool.start(0, child({{"do", "calibrate"}, {"threads", hardware_threads()}}, kCalibrationTimeout));
  run["environment"]["calibration"] = nullptr;
  if (const auto ended = pool.wait()) {
    const Json reply = reply_of(ended->second, kCalibrationTimeout);
    if (reply["status"] == "ok") {
      run["environment"]["calibration"] = reply["calibration"];
      set_pace_of(run);
    } else
      run["environment"]["calibration_fault"] = reply["reason"];
  }
  run["run"] = hash_of({run["started_at"], run["config"], run["environment"], getpid()});
  order_seed_ = std::stoull(run["run"].get<std::string>(), nullptr, 16) >>
                12;  // 52 bits: exact in every JSON reader
  run["order_seed"] = order_seed_;
  if (const std::string fault = schema_fault(run); !fault.empty()) {
    run["environment"]["calibration"] = nullptr;
    run["environment"]["calibration_fault"] = fault;
  }
  if (!stopping()) writer_.append(run);
  result_.run = std::move(run);
}

}  // namespace attn
