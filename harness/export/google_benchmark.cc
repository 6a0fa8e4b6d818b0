// Speed rows as Google Benchmark prints them; see export.h. Fields: docs/user_guide.md and
// src/json_reporter.cc of Google Benchmark 1.7.1.
#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "harness/compare/machines.h"
#include "harness/export/export.h"

namespace attn {
namespace {

constexpr double kNanoseconds = 1e9;

// "linear/length:512/mode:forward": the variant, then each axis, as Google Benchmark names
// arguments.
std::string benchmark_name(const CellKey& key) {
  std::string name = name_of_variant(key.variant);
  for (const auto& [axis, value] : named_values(key.axes))
    name += fmt::format("/{}:{}", axis, to_string(value));
  return name;
}

Json context_of(const RunLine& run) {
  const auto fact = [&](const char* name) {
    return run.environment.contains(name) ? run.environment[name] : Json();
  };
  const Json load = fact("load_before");
  return {{"date", run.started_at},
          {"executable", "attnbench"},
          {"num_cpus", fact("cores")},
          {"mhz_per_cpu", 0},
          {"cpu_scaling_enabled", fact("governor") == "powersave"},
          {"caches", Json::array()},
          {"load_avg", load.is_null() ? Json::array() : Json::array({load})},
          {"library_build_type", "release"},
          {"attnbench_version", fact("version")},
          {"attnbench_commit", fact("commit")},
          {"attnbench_cpu_model", fact("cpu_model")},
          {"attnbench_cpu_time", "not measured: cpu_time repeats real_time"}};
}

class Entries {
 public:
  void add(const Row& row, size_t family) {
    const SpeedMetrics& speed = row.speed();
    const std::vector<double>& times = row.result.times;
    const auto count = static_cast<double>(times.size());
    name_ = benchmark_name(row.key);
    common_ = {{"family_index", family},
               {"per_family_instance_index", 0},
               {"run_name", name_},
               {"repetitions", times.size()},
               {"threads", row.key.axes.threads.value_or(1)}};
    speed_ = &speed;
    for (size_t i = 0; i < times.size(); i++) add_sample(i, times[i]);
    const double mean = speed.time.mean;
    double squares = 0;
    for (const double time : times) squares += (time - mean) * (time - mean);
    const double deviation = times.size() > 1 ? std::sqrt(squares / (count - 1)) : 0;
    add_aggregate("mean", "time", mean, times.size());
    add_aggregate("median", "time", speed.time.median, times.size());
    add_aggregate("stddev", "time", deviation, times.size());
    add_aggregate("cv", "percentage", deviation / mean, times.size());
  }
  Json take() { return std::move(entries_); }

 private:
  void add_sample(size_t index, double seconds) {
    Json entry = {{"name", name_}};
    entry.update(common_);
    entry["run_type"] = "iteration";
    entry["repetition_index"] = index;
    entry["iterations"] = 1;
    add_time(entry, seconds * kNanoseconds);
    // Of the cell's median, as the row has both.
    entry["items_per_second"] = speed_->tokens_per_s * speed_->time.median / seconds;
    entries_.push_back(std::move(entry));
  }
  void add_aggregate(const char* what, const char* unit, double value, size_t samples) {
    Json entry = {{"name", name_ + "_" + what}};
    entry.update(common_);
    entry["run_type"] = "aggregate";
    entry["aggregate_name"] = what;
    entry["aggregate_unit"] = unit;
    entry["iterations"] = samples;
    add_time(entry, value * (std::string_view(unit) == "time" ? kNanoseconds : 1));
    entries_.push_back(std::move(entry));
  }
  static void add_time(Json& entry, double value) {
    entry["real_time"] = value;
    entry["cpu_time"] = value;
    entry["time_unit"] = "ns";
  }

  std::string name_;
  Json common_;
  const SpeedMetrics* speed_ = nullptr;
  Json entries_ = Json::array();
};

}  // namespace

Json google_benchmark(const std::vector<RowsFile>& runs) {
  Json context;
  Entries entries;
  size_t family = 0;
  for (const RowsFile& run : runs) {
    const std::string other = origin_difference(runs.front().run, run.run);
    ATTN_CHECK(other.empty(),
               "'{}' and '{}' are of two machines or builds ({}), and Google Benchmark's JSON "
               "describes one; export them one at a time",
               runs.front().path, run.path, other);
    if (context.is_null()) context = context_of(run.run);
    for (const Row& row : run.rows)
      if (row.key.measure == Measure::speed && row.is_ok()) entries.add(row, family++);
  }
  return {{"context", context}, {"benchmarks", entries.take()}};
}

}  // namespace attn
