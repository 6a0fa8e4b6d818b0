// The run line: what was asked, on which machine, and how fast that machine is; see sweep.h.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>

#include "core/check.h"
#include "core/parallel.h"
#include "harness/measure/measure.h"
#include "harness/sweep/outcome.h"
#include "harness/sweep/sweeper.h"
#include "variants/catalog.h"

namespace attn {
namespace {

constexpr double kCalibrationTimeout = 120;  // seconds; it takes a few

Json number_of(const std::string& text) {
  int64_t whole = 0;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, whole).ptr == end && !text.empty()) return whole;
  double value = 0;
  const auto read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc() && read.ptr == end ? finite_or_null(value) : Json(nullptr);
}

// true and false, and text that is empty, are not texts in a row.
Json environment_json() {
  Json object = Json::object();
  for (const EnvironmentField& field : environment()) {
    if (field.is_number)
      object[field.name] = number_of(field.value);
    else if (field.value == "true" || field.value == "false")
      object[field.name] = field.value == "true";
    else if (field.value.empty() && field.name != "flags")
      object[field.name] = nullptr;
    else
      object[field.name] = field.value;
  }
  object["threads"] = hardware_threads();
  return object;
}

// The parts of a run line that tell one way of measuring from another.
Json identity_of(const Json& run) {
  Json environment = run["environment"];
  for (const char* passing : {"load_before", "calibration", "calibration_fault"})
    environment.erase(passing);
  return {{"config", run["config"]}, {"environment", environment}};
}

int64_t first_number(const char* path, std::string_view name = "") {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.rfind(name, 0) == 0) return std::strtoll(line.c_str() + name.size(), nullptr, 10);
  return 0;
}

// Bytes the cells may use: what the machine, or the container's limit, has left; 0 where neither
// says.
int64_t free_memory() {
  int64_t available = first_number("/proc/meminfo", "MemAvailable:") * 1024;
  if (const int64_t limit = first_number("/sys/fs/cgroup/memory.max"); limit > 0)
    available = std::min(available, limit - first_number("/sys/fs/cgroup/memory.current"));
  const int64_t reserve =
      std::max<int64_t>(available / 10, 256 << 20);  // for the system and this process
  return std::max<int64_t>(available - reserve, 0);
}

Json variants_json() {
  Json list = Json::array();
  for (const VariantInfo& info : all_variants())
    list.push_back({{"name", info.name}, {"order", list.size()}});
  return list;
}

}  // namespace

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
  for (const Json& row : writer_.existing())
    if (row["kind"] == "run") result_.run = row;
  if (!result_.run.is_null() && identity_of(result_.run) == identity_of(run)) {
    order_seed_ = result_.run.value("order_seed", uint64_t{0});
    return;
  }
  announce("calibrating the machine");
  ChildPool pool;
  pool.start(0, child({{"do", "calibrate"}, {"threads", hardware_threads()}}, kCalibrationTimeout));
  run["environment"]["calibration"] = nullptr;
  if (const auto ended = pool.wait()) {
    const Json reply = reply_of(ended->second, kCalibrationTimeout);
    if (reply["status"] == "ok")
      run["environment"]["calibration"] = reply["calibration"];
    else
      run["environment"]["calibration_fault"] = reply["reason"];
  }
  run["run"] = hash_of({run["started_at"], run["config"], run["environment"], getpid()});
  order_seed_ = std::stoull(run["run"].get<std::string>(), nullptr, 16) >>
                12;  // 52 bits: exact in every JSON reader
  run["order_seed"] = order_seed_;
  if (!stopping()) writer_.append(run);
  result_.run = std::move(run);
}

}  // namespace attn
