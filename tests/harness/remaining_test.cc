// The running sums against the plain ones, and their cost for the largest plans.
#include "harness/sweep/remaining.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "core/rng.h"
#include "harness/sweep/grammar.h"
#include "harness/sweep/pilots.h"

namespace attn::harness_remaining_test {
namespace {

constexpr int kJobs = 2;

Plan made_plan(size_t count, Rng& random) {
  Plan plan;
  const char* const measures[] = {"speed", "memory", "fidelity", "accuracy"};
  for (size_t i = 0; i < count; i++) {
    Cell cell;
    cell.key = {{"measure", measures[random.below(4)]}};
    cell.forecast_s = static_cast<double>(random.below(100'000)) * 1e-3;
    plan.cells.push_back(std::move(cell));
  }
  return plan;
}

enum class State { open, held, finished };

// As it is defined: over all cells.
double plain_sum(const Plan& plan, const std::vector<State>& states, double spent_s) {
  double left = 0, done = 0;
  for (size_t i = 0; i < plan.cells.size(); i++) {
    const double share = share_of(plan.cells[i], kJobs);
    if (states[i] == State::open) left += share;
    if (states[i] == State::finished) done += share;
  }
  return left * std::clamp(done > 1 ? spent_s / done : 1, 0.1, 10.0);
}

TEST(Remaining, IsThePlainSumAtEveryMoment) {
  Rng random = rng(3, "remaining");
  const Plan plan = made_plan(500, random);
  std::vector<State> states(plan.cells.size(), State::open);
  std::vector<size_t> order;
  for (size_t i = 0; i < states.size(); i++) order.push_back(i);
  for (size_t i = order.size(); i > 1; i--) std::swap(order[i - 1], order[random.below(i)]);
  Remaining remaining(plan, kJobs);
  EXPECT_DOUBLE_EQ(remaining.seconds_left(0), plain_sum(plan, states, 0));
  double spent = 0;
  for (size_t i = 0; i < order.size(); i++) {
    const bool held = i < 100;  // those of the file come first
    states[order[i]] = held ? State::held : State::finished;
    if (held)
      remaining.hold(order[i]);
    else
      remaining.finish(order[i]), spent += static_cast<double>(random.below(100));
    const double wanted = plain_sum(plan, states, spent);
    ASSERT_NEAR(remaining.seconds_left(spent), wanted, 1e-6 * (1 + wanted)) << i;
  }
  EXPECT_EQ(remaining.seconds_left(spent), 0);
}

// A sum over all cells at each of them would take 20,000 times longer.
TEST(Remaining, CostsNoMoreInALargePlan) {
  Rng random = rng(4, "remaining");
  const auto seconds_for = [&](size_t count) {
    const Plan plan = made_plan(count, random);
    Remaining remaining(plan, kJobs);
    const auto start = std::chrono::steady_clock::now();
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
      remaining.finish(i);
      sum += remaining.seconds_left(static_cast<double>(i));
    }
    EXPECT_GE(sum, 0);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  EXPECT_LT(seconds_for(kMostCells), 0.5);
}

}  // namespace
}  // namespace attn::harness_remaining_test
