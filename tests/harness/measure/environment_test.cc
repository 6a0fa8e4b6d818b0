// What surrounds a measurement: the machine, what disturbs it, the memory at its peak.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <map>
#include <thread>
#include <vector>

#include <sched.h>
#include <unistd.h>

#include "core/base/affinity.h"
#include "harness/measure/disturbance.h"
#include "harness/measure/environment.h"
#include "harness/measure/peak_memory.h"
#include "harness/store/schema.h"
#include "tests/harness/store/sample_rows.h"
#include "variants/catalog.h"
#include "tests/said.h"

namespace attn::environment_test {
namespace {

// Every field of the contract is there, in its type, and nothing names the machine.

TEST(Environment, KeepsTheSchema) {
  Json run = sample_run();
  Json object = {{"calibration", nullptr}};
  for (const EnvironmentField& field : environment()) {
    EXPECT_FALSE(object.contains(field.name)) << field.name;
    Json value = field.value;
    if (field.value.empty())
      value = nullptr;
    else if (field.is_number || field.is_flag)
      value = Json::parse(field.value);
    object[field.name] = value;
  }
  run["environment"] = object;
  EXPECT_EQ(schema_fault(run), "") << object.dump(1);
}

TEST(Environment, SaysHowItWasBuilt) {
  std::map<std::string, std::string> fields;
  for (const EnvironmentField& field : environment()) fields[field.name] = field.value;
  EXPECT_TRUE(fields["benchmark_library_build"] == "debug" ||
              fields["benchmark_library_build"] == "release");
  for (const char* library :
       {"Eigen 3.", "Google Benchmark 1.", "fmt ", "Boost 1.", "nlohmann-json 3."}) {
    EXPECT_TRUE(says(fields["libraries"], library)) << library;
  }
  EXPECT_TRUE(says(fields["flags"], "-O"));
  EXPECT_FALSE(says(fields["flags"], "$"));
  const bool no_commit = fields["commit"].empty();
  EXPECT_TRUE(no_commit || fields["commit"].size() == 40) << fields["commit"];
  EXPECT_EQ(fields["dirty"].empty(), no_commit);
#ifdef __AVX512F__
  EXPECT_EQ(fields["instruction_set"], "avx512");
#endif
}

TEST(Environment, NamesNoHost) {
  char host[256] = {};
  ASSERT_EQ(::gethostname(host, sizeof host - 1), 0);
  if (std::string(host).size() < 4) GTEST_SKIP() << "the host's name is too short to look for";
  for (const EnvironmentField& field : environment()) {
    EXPECT_FALSE(says(field.value, host)) << field.name;
  }
}

// What was done between two readings is counted, and counts add up.

void compute_for(double seconds) {
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() <
         seconds) {
  }
}

double process_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

TEST(Disturbance, PagesThatAreMadeAreCounted) {
  const DisturbanceMeter meter;
  const std::vector<char> pages(size_t{16} << 20, 1);
  const Disturbance found = meter.read();
  EXPECT_GT(found.seconds, 0);
  EXPECT_GT(found.minor_faults, pages[1] * 4);  // pages may be huge: 2 MiB
}

TEST(Disturbance, ACoreThatTwoThreadsShareIsLostAgainAndAgain) {
  const int cpu = allowed_cpus().back();
  const auto compute_there = [&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<size_t>(cpu), &set);
    sched_setaffinity(0, sizeof set, &set);  // of this thread
    compute_for(0.2);
  };
  const DisturbanceMeter meter;
  std::thread first(compute_there), second(compute_there);
  first.join();
  second.join();
  EXPECT_GT(meter.read().involuntary_switches, 5);
}

TEST(Disturbance, OwnWorkIsNotThatOfOthers) {
  const double before = process_seconds();
  const DisturbanceMeter meter;
  while (process_seconds() - before < 0.2) compute_for(0.01);  // others may hold the core meanwhile
  const Disturbance found = meter.read();
  EXPECT_GE(found.seconds, 0.2);
  ASSERT_TRUE(found.others_s && found.stolen_s) << "/proc/stat of Linux";
  const double machine_s = found.seconds * static_cast<double>(std::thread::hardware_concurrency());
  EXPECT_LE(*found.others_s + *found.stolen_s, machine_s - 0.1) << "0.2 of them were its own";
}

TEST(Disturbance, VisitsAddUp) {
  Disturbance sum{.seconds = 1,
                  .involuntary_switches = 2,
                  .minor_faults = 3,
                  .major_faults = 4,
                  .stolen_s = std::nullopt,
                  .others_s = 1,
                  .load = 3,
                  .frequency_hz = 3e9};
  sum += {.seconds = 2,
          .involuntary_switches = 3,
          .minor_faults = 4,
          .major_faults = 5,
          .stolen_s = 2,
          .others_s = 2,
          .load = 2,
          .frequency_hz = 2e9};
  EXPECT_EQ(sum.seconds, 3);
  EXPECT_EQ(sum.involuntary_switches, 5);
  EXPECT_EQ(sum.minor_faults, 7);
  EXPECT_EQ(sum.major_faults, 9);
  EXPECT_EQ(sum.stolen_s, 2);
  EXPECT_EQ(sum.others_s, 3);
  EXPECT_EQ(sum.load, 3) << "the highest";
  EXPECT_EQ(sum.frequency_hz, 2e9) << "the lowest";
}

// The pool's peaks of known variants: declared bytes, growth with the length, and sums that must
// hold.

MemoryFigures figures_of(const char* kernel, int64_t length, Mode mode = Mode::forward) {
  WorkloadSpec spec;
  spec.variant = &find_variant("full");
  spec.params = {{"kernel", std::string(kernel)}};
  spec.length = length;
  spec.heads = 2;
  spec.head_dim = 16;
  spec.mode = mode;
  spec.causal = mode == Mode::decode;
  Workload workload(spec);
  return measure_memory(workload);
}

double exponent(const MemoryFigures& small, const MemoryFigures& large, double factor) {
  return std::log(static_cast<double>(large.extra_bytes) / static_cast<double>(small.extra_bytes)) /
         std::log(factor);
}

TEST(Memory, MaterializedGrowsQuadraticallyAndAsDeclared) {
  const MemoryFigures small = figures_of("materialized", 256),
                      large = figures_of("materialized", 1024);
  EXPECT_GE(exponent(small, large, 4), 1.9);
  EXPECT_LE(exponent(small, large, 4), 2.05);
  for (const MemoryFigures& found : {small, large}) {
    EXPECT_NEAR(
        static_cast<double>(found.extra_bytes) / static_cast<double>(*found.declared_extra_bytes),
        1, 0.05);
  }
}

TEST(Memory, TiledGrowsLinearlyAndAsDeclared) {
  const MemoryFigures small = figures_of("tiled", 1024), large = figures_of("tiled", 4096);
  EXPECT_LE(exponent(small, large, 4), 1.05);
  for (const MemoryFigures& found : {small, large}) {
    EXPECT_NEAR(
        static_cast<double>(found.extra_bytes) / static_cast<double>(*found.declared_extra_bytes),
        1, 0.05);
  }
}

TEST(Memory, PeakIsInputsAndWhatTheRunAdds) {
  const int64_t length = 512, inputs = 3 * 2 * length * 16 * static_cast<int64_t>(sizeof(real));
  const MemoryFigures found = figures_of("tiled", length);
  EXPECT_EQ(found.peak_bytes, found.extra_bytes + inputs);
  EXPECT_GE(found.peak_bytes, found.activations_bytes);
  EXPECT_LE(found.peak_bytes,
            found.activations_bytes + found.workspace_bytes + found.weights_bytes);
  EXPECT_GE(found.activations_bytes, inputs + inputs / 3);  // and the output
  EXPECT_EQ(found.weights_bytes, 0);
  EXPECT_EQ(found.state_bytes, inputs * 2 / 3);  // the cache of keys and values
}

TEST(Memory, TrainHoldsGradientsToo) {
  const MemoryFigures forward = figures_of("tiled", 512),
                      train = figures_of("tiled", 512, Mode::train);
  EXPECT_GT(train.peak_bytes,
            forward.peak_bytes + 3 * 2 * 512 * 16 * static_cast<int64_t>(sizeof(real)));
  EXPECT_EQ(train.declared_extra_bytes, 0);
}

// Its keys and values and four rows of inputs and output; what they were made from is gone.
TEST(Memory, DecodingHoldsItsState) {
  const int64_t row = 2 * 16 * static_cast<int64_t>(sizeof(real));
  const MemoryFigures found = figures_of("tiled", 3000, Mode::decode);
  EXPECT_EQ(found.state_bytes, 2 * 3000 * row);
  EXPECT_EQ(found.activations_bytes, *found.state_bytes + 4 * row);
  EXPECT_LE(found.extra_bytes, 16 << 10);
  EXPECT_EQ(found.peak_bytes, found.activations_bytes + found.workspace_bytes);
}

// Nor is a forward timed with the recording of a tape: weights of a model want gradients always.
TEST(Memory, ForwardKeepsNoTape) {
  int64_t extra[2] = {};
  for (const Mode mode : {Mode::forward, Mode::train}) {
    WorkloadSpec spec;
    spec.variant = &find_variant("full");
    spec.scope = ScopeKind::model;
    spec.length = 256;
    spec.mode = mode;
    Workload workload(spec);
    extra[mode == Mode::train] = measure_memory(workload).extra_bytes;
  }
  EXPECT_LT(2 * extra[0], extra[1]);
}

TEST(Memory, SaysWhatTheProcessHeldAtMost) {
  const MemoryFigures found = figures_of("materialized", 1024);
  EXPECT_GE(found.rss_peak_bytes, found.peak_bytes);
  EXPECT_LE(found.rss_peak_bytes, int64_t{1} << 40);
}

TEST(Memory, IsTheSameTwice) {
  const MemoryFigures first = figures_of("tiled", 300), second = figures_of("tiled", 300);
  EXPECT_EQ(first.peak_bytes, second.peak_bytes);
  EXPECT_EQ(first.workspace_bytes, second.workspace_bytes);
}

}  // namespace
}  // namespace attn::environment_test
