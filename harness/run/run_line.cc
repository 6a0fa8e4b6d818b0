// The environment as JSON, and the memory that cells may use; see run_line.h.
#include "harness/run/run_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <optional>

#include "core/base/cgroup.h"
#include "core/base/parallel.h"
#include "harness/measure/environment.h"

namespace attn {
namespace {

constexpr double kGiB = 1 << 30;

Json number_of(const std::string& text) {
  int64_t whole = 0;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, whole).ptr == end && !text.empty()) return whole;
  double value = 0;
  const auto read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc() && read.ptr == end ? finite_or_null(value) : Json(nullptr);
}

int64_t first_number(const char* path, std::string_view name = "") {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.rfind(name, 0) == 0) return std::strtoll(line.c_str() + name.size(), nullptr, 10);
  return 0;
}

}  // namespace

int64_t free_memory() {
  int64_t available = first_number("/proc/meminfo", "MemAvailable:") * 1024;
  if (available == 0) return 0;
  if (const std::optional<int64_t> left = cgroup_memory_left())
    available = std::min(available, *left);
  const int64_t reserve =
      std::max<int64_t>(available / 10, 256 << 20);  // for the system and this process
  return std::max<int64_t>(available - reserve, 1);
}

int64_t memory_of_each(int64_t jobs, int64_t asked, int64_t free) {
  if (asked > 0 || free == 0) return asked;
  return std::max<int64_t>(free / jobs, 1);
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

// Nodes of one kind differ by a few pages of memory: it is compared in whole GiB.
Json machine_of(Json environment) {
  environment.erase("load_before");
  Json& memory = environment["memory_bytes"];
  if (memory.is_number()) memory = std::llround(memory.get<double>() / kGiB) << 30;
  return environment;
}

std::string machine_id() { return hash_of(machine_of(environment_json())).substr(0, 8); }

}  // namespace attn
