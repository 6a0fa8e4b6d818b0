// The machine's peaks, its witness, and where the time of a pass goes.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <vector>

#include "core/base/marks.h"
#include "core/base/parallel.h"
#include "core/simd/product.h"
#include "harness/measure/breakdown.h"
#include "harness/measure/calibrate.h"
#include "harness/measure/witness.h"
#include "variants/catalog.h"

namespace attn::calibrate_test {
namespace {

// The measured peak lies above what a product reaches, by less than a factor of three, and
// follows the threads.

double product_rate() {
  constexpr int64_t kSide = 320;
  const std::vector<real> a(kSide * kSide, real(0.5)), b = a;
  std::vector<real> c(kSide * kSide);
  double best = std::numeric_limits<double>::infinity();
  for (int trial = 0; trial < 40; ++trial) {
    const auto start = std::chrono::steady_clock::now();
    product(kSide, kSide, kSide, {a.data(), kSide, 1}, {b.data(), kSide}, c.data(), kSide);
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return 2.0 * kSide * kSide * kSide / best;
}

#if defined(ATTN_SANITIZED) || !defined(__OPTIMIZE__)
constexpr bool kSlowBuild = true;
#else
constexpr bool kSlowBuild = false;
#endif

TEST(Calibrate, AProductReachesAPlausiblePartOfThePeak) {
  if (kSlowBuild) GTEST_SKIP() << "rates mean nothing in this build";
  const Calibration found = calibrate(2);
  EXPECT_EQ(found.threads, 2);
  const double fraction = product_rate() / found.fma_flops_per_s_one;
  EXPECT_GE(fraction, 0.3);
  EXPECT_LE(fraction, 1.5);  // a neighbour may have slowed the calibration, but not the product
  EXPECT_GE(found.fma_flops_per_s_all, 0.25 * found.fma_flops_per_s_one);
  EXPECT_LE(found.fma_flops_per_s_all, 4 * found.fma_flops_per_s_one);
  EXPECT_GE(found.copy_bytes_per_s, 1e8);
  EXPECT_LE(found.copy_bytes_per_s, 1e13);
  EXPECT_LE(found.copy_bytes_per_s_one, found.copy_bytes_per_s);
  EXPECT_GE(found.copy_bytes_per_s_one, found.copy_bytes_per_s / 8);
}

TEST(PeakOf, FollowsTheThreadsUsed) {
  Calibration machine;
  machine.fma_flops_per_s_one = 100;
  machine.fma_flops_per_s_all = 350;
  machine.threads = 4;
  EXPECT_EQ(peak_of(machine, 1), 100);
  EXPECT_EQ(peak_of(machine, 2), 200);
  EXPECT_EQ(peak_of(machine, 4), 350);
  EXPECT_EQ(peak_of(machine, 8), 350);  // more threads than cores
  machine.fma_flops_per_s_all = 150;    // cores that share their units
  EXPECT_EQ(peak_of(machine, 2), 150);
}

TEST(BandwidthOf, FollowsTheThreadsUsed) {
  Calibration machine;
  machine.copy_bytes_per_s_one = 10;
  machine.copy_bytes_per_s = 25;
  machine.threads = 4;
  EXPECT_EQ(bandwidth_of(machine, 1), 10);
  EXPECT_EQ(bandwidth_of(machine, 2), 20);
  EXPECT_EQ(bandwidth_of(machine, 3), 25);  // two threads and a half saturate the memory
  EXPECT_EQ(bandwidth_of(machine, 8), 25);
}

// The witness against the calibration of the machine, and the slowest of several threads.

TEST(Witness, RatesAreThoseOfTheMachine) {
  const WitnessStand stand(1);
  Witness best = stand.look();
  for (int i = 0; i < 20; i++) {  // tests run beside others: the best of some looks
    const Witness seen = stand.look();
    best.flops_per_s = std::max(best.flops_per_s, seen.flops_per_s);
    best.copy_bytes_per_s = std::max(best.copy_bytes_per_s, seen.copy_bytes_per_s);
  }
  const Calibration machine = calibrate(1);
  EXPECT_LT(best.flops_per_s, 1.1 * machine.fma_flops_per_s_one);
#ifndef ATTN_SANITIZED  // where a product is far from the peak
  EXPECT_GT(best.flops_per_s, 0.4 * machine.fma_flops_per_s_one);
#endif
  EXPECT_GT(best.copy_bytes_per_s, 0.3 * machine.copy_bytes_per_s_one)
      << "4 MiB, nearer than memory";
}

TEST(Witness, TheSlowestThreadCounts) {
  const Witness found = WitnessStand(2).look();
  EXPECT_GT(found.flops_per_s, 0);
  EXPECT_GT(found.copy_bytes_per_s, 0);
  const Witness slower = slower_of({.flops_per_s = 1, .copy_bytes_per_s = 4},
                                   {.flops_per_s = 2, .copy_bytes_per_s = 3});
  EXPECT_EQ(slower.flops_per_s, 1);
  EXPECT_EQ(slower.copy_bytes_per_s, 3);
}

// Where the time of passes goes: of a variant whose parts last as long as they are told, and that
// the parts of real variants add up to their passes.

void wait_us(int64_t microseconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
  while (std::chrono::steady_clock::now() < end) {
  }
}

// Three quarters of its time are hashing.
class Divided final : public Attention {
 public:
  explicit Divided(const AttentionConfig& config) : Attention(config) {}
  static inline int64_t passes = 0, marked = 0;

 private:
  Var do_forward(const Var& q, const Var&, const Var&, const Mask&) const override {
    ++passes;
    marked += marks_are_on();
    {
      const Mark mark(Part::hashing);
      wait_us(600);
    }
    wait_us(200);
    return q;
  }
  Cost do_cost(const AttentionShape&) const override { return {.flops = 1}; }
};

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double all_parts(const MarkedPasses& found) {
  double all = 0;
  for (const auto& [part, seconds] : found.part_s) all += seconds;
  return all;
}

TEST(Breakdown, TellsTheShareOfEachPart) {
  VariantInfo info;
  info.name = "divided";
  info.make = make_as<Divided>;
  WorkloadSpec spec;
  spec.variant = &info;
  spec.length = 4;
  Workload workload(spec);
  Divided::passes = Divided::marked = 0;
  const MarkedPasses found = measure_parts(workload);
  EXPECT_EQ(found.marked_s.size(), found.plain_s.size());
  const int64_t repeats = found.passes / std::ssize(found.marked_s);
  EXPECT_EQ(found.passes, repeats * std::ssize(found.marked_s));
  EXPECT_LE(repeats, 2) << "a pass takes at least 0.8 ms, and more where the machine is busy";
  EXPECT_EQ(Divided::marked, found.passes + 1);
  EXPECT_EQ(Divided::passes, 2 * (found.passes + 1));
  EXPECT_EQ(found.marks, found.passes) << "one in a pass";
  const double passes = static_cast<double>(found.passes);
  EXPECT_GE(found.part_s.at("hashing"), 0.99 * 600e-6 * passes);
  EXPECT_GE(found.part_s.at("other"), 0.99 * 200e-6 * passes);
  EXPECT_NEAR(all_parts(found), static_cast<double>(repeats) * sum(found.marked_s),
              1e-3 * all_parts(found));
}

TEST(Breakdown, VisitsAreTakenTogether) {
  MarkedPasses all{
      .marked_s = {2}, .plain_s = {1}, .part_s = {{"masks", 2}}, .passes = 1, .marks = 3};
  all += {.marked_s = {4, 5},
          .plain_s = {3, 4},
          .part_s = {{"masks", 1}, {"other", 8}},
          .passes = 2,
          .marks = 5};
  EXPECT_EQ(all.marked_s, (std::vector<double>{2, 4, 5}));
  EXPECT_EQ(all.plain_s, (std::vector<double>{1, 3, 4}));
  EXPECT_EQ(all.part_s, (std::map<std::string, double>{{"masks", 3}, {"other", 8}}));
  EXPECT_EQ(all.passes, 3);
  EXPECT_EQ(all.marks, 8);
}

// Forward, backward and a step of a decoder, on one thread and on two.
TEST(Breakdown, ThePartsOfEveryVariantAddUpToItsPasses) {
  for (const VariantInfo& info : all_variants())
    for (const Mode mode : {Mode::forward, Mode::train, Mode::decode})
      for (const int count : {1, 2}) {
        WorkloadSpec spec;
        spec.variant = &info;
        spec.length = 256;
        spec.heads = 2;
        spec.head_dim = 16;
        spec.mode = mode;
        spec.causal = mode == Mode::decode;
        spec.threads = count;
        if (why_not(spec)) continue;
        Workload workload(spec);
        workload.run();
        double other = 1;  // the least share: a pass may be interrupted anywhere
        for (int pass = 0; pass < 5; ++pass) {
          const auto one_pass = [&] { workload.run(); };
          const PartTimes times = time_parts(one_pass);
          const double all = std::accumulate(times.seconds.begin(), times.seconds.end(), 0.0);
          EXPECT_NEAR(all, count * times.pass_s, 0.05 * times.pass_s)
              << info.name << " " << to_string(mode) << " on " << count << " threads";
          other = std::min(other, times.of(Part::other) / all);
        }
        if (mode == Mode::decode) continue;  // only kernels have marks there
        EXPECT_LT(other, 0.5) << info.name << " lacks marks";
      }
  set_threads(1);
}

}  // namespace
}  // namespace attn::calibrate_test
