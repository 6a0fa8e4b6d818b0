// What was done between two readings is counted, and counts add up.
#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>
#include <ctime>
#include <thread>
#include <vector>

#include "core/base/affinity.h"
#include "harness/measure/disturbance.h"

namespace attn::disturbance_test {
namespace {

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

}  // namespace
}  // namespace attn::disturbance_test
