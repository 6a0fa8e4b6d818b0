// Where the time of passes goes: of a variant whose parts last as long as they are told, and that
// the parts of real variants add up to their passes.
#include "harness/measure/breakdown.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "core/base/marks.h"
#include "core/base/parallel.h"
#include "variants/catalog.h"

namespace attn::breakdown_test {
namespace {

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
}  // namespace attn::breakdown_test
