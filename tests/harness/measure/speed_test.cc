// Samples come back as asked for, again and again in one process, near the truth, and nothing is
// printed.
#include <gtest/gtest.h>

#include <chrono>

#include "harness/measure/speed.h"
#include "harness/measure/statistics.h"
#include "variants/catalog.h"

namespace attn::speed_test {
namespace {

// A stand-in whose forward lasts as long as it is told.
class Waiter final : public Attention {
 public:
  explicit Waiter(const AttentionConfig& config) : Attention(config) {}

 private:
  Var do_forward(const Var& q, const Var&, const Var&, const Mask&) const override {
    ++calls;
    if (throws) throw_error("no more");
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::microseconds(params().integer("wait_us"));
    while (std::chrono::steady_clock::now() < end) {
    }
    return q;
  }
  Cost do_cost(const AttentionShape&) const override { return {.flops = 1}; }

 public:
  static inline int calls = 0;
  static inline bool throws = false;
};

const VariantInfo& waiter() {
  static const VariantInfo info = [] {
    VariantInfo made;
    made.name = "waiter";
    made.params = {ParamSpec("wait_us", 2000, "how long a forward lasts")};
    made.make = make_as<Waiter>;
    return made;
  }();
  return info;
}

WorkloadSpec spec_of(int64_t wait_us) {
  WorkloadSpec spec;
  spec.variant = &waiter();
  spec.params = {{"wait_us", wait_us}};
  spec.length = 4;
  return spec;
}

TEST(Speed, SamplesAreSecondsPerRun) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Workload workload(spec_of(500));
  const std::vector<double> samples = time_samples(workload, {4, 0.05, 0.005});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  ASSERT_EQ(samples.size(), 4u);
  for (const double sample : samples) EXPECT_GE(sample, 0.0005);
  EXPECT_LE(summarize(samples).min,
            0.02);  // the least disturbed one on a busy machine; all runs of a sample take 0.05
}

TEST(Speed, ASampleLastsAsLongAsAsked) {
  Workload workload(spec_of(100));
  Waiter::calls = 0;
  time_samples(workload, {3, 0.01, 0});
  EXPECT_GE(Waiter::calls, 3 * 20);  // 0.01 s of at most 0.5 ms each
}

TEST(Speed, CanBeMeasuredAgainAndAgain) {
  Workload fast(spec_of(200)), slow(spec_of(3000));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(time_samples(fast, {3, 0.002, 0}).size(), 3u);
    EXPECT_EQ(time_samples(slow, {2, 0.002, 0}).size(), 2u);
    EXPECT_GE(summarize(time_samples(slow, {2, 0.002, 0})).min, 0.003);
  }
}

TEST(Speed, AnExceptionComesThrough) {
  Workload workload(spec_of(100));
  time_samples(workload, {1, 0.001, 0});
  Waiter::throws = true;
  EXPECT_THROW(time_samples(workload, {1, 0.001, 0}), Error);
  Waiter::throws = false;
  EXPECT_EQ(time_samples(workload, {2, 0.001, 0}).size(), 2u);
  EXPECT_THROW(time_samples(workload, {0, 0.001, 0}), Error);
}

}  // namespace
}  // namespace attn::speed_test
