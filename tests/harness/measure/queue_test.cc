// The queue before a server: waits by the closed form of one server without batching, what batching
// changes, quantiles of requests that never meet, interpolation, and wrong use.
#include "harness/measure/queue.h"

#include <gtest/gtest.h>

#include "harness/measure/served_calls.h"
#include "harness/measure/serving.h"
#include "tests/said.h"

namespace attn::queue_test {
namespace {

MeasuredCalls prompts_alone(double seconds) {
  return {.prompts = {8}, .calls = {{.prompt = 8, .seconds = seconds}}};
}

// A request of one token is its prompt's call: a server with a constant service time S. Its mean
// wait is ρS / (2(1 - ρ)) for utilisation ρ (Pollaczek 1930 and Khinchine 1932; M/D/1).
TEST(Queue, WaitsAsTheClosedFormOfOneServer) {
  constexpr double kService = 0.01;
  for (const double load : {0.2, 0.5, 0.8}) {
    const QueueFigures found =
        simulate_queue(prompts_alone(kService), {}, load / kService, 400000, 1);
    EXPECT_NEAR(found.utilisation, load, 0.01) << load;
    EXPECT_NEAR(found.wait_s / (load * kService / (2 * (1 - load))), 1, 0.05) << load;
    EXPECT_NEAR(found.sustained_rate, 1 / kService, 1e-6);
    EXPECT_GE(found.first_token_p50_s, kService);
    EXPECT_EQ(found.token_p50_s, 0);
  }
}

// Of two kinds of prompts the closed form takes the second moment: λE[S²] / (2(1 - ρ)).
TEST(Queue, WaitsAsTheClosedFormOfUnequalPrompts) {
  const MeasuredCalls measured{
      .prompts = {8, 8, 8, 64},
      .calls = {{.prompt = 8, .seconds = 0.002}, {.prompt = 64, .seconds = 0.03}}};
  const double mean = (3 * 0.002 + 0.03) / 4, square = (3 * 4e-6 + 9e-4) / 4, rate = 0.6 / mean;
  const QueueFigures found = simulate_queue(measured, {}, rate, 400000, 2);
  EXPECT_NEAR(found.wait_s / (rate * square / (2 * (1 - 0.6))), 1, 0.05);
}

TEST(Queue, RequestsThatNeverMeetWaitForNobody) {
  const MeasuredCalls measured{.prompts = {8},
                               .calls = {{.prompt = 8, .seconds = 0.01},
                                         {.sequences = 1, .seconds = 0.002},
                                         {.sequences = 4, .seconds = 0.003}}};
  const QueueFigures found =
      simulate_queue(measured, {.prompts = 1, .sequences = 4, .tokens = 5}, 1e-3, 2000, 1);
  EXPECT_NEAR(found.first_token_p99_s, 0.01, 1e-9);
  EXPECT_NEAR(found.token_p50_s, 0.002, 1e-9);
  EXPECT_NEAR(found.token_p99_s, 0.002, 1e-9);
  EXPECT_NEAR(found.wait_s, 0, 1e-9);
}

// Where requests always wait, a server of four answers a request of 5 tokens every call or so: a
// call has one prompt and up to three tokens.
TEST(Queue, BatchingSustainsMore) {
  const MeasuredCalls measured{.prompts = {8},
                               .calls = {{.prompt = 8, .seconds = 0.01},
                                         {.sequences = 1, .seconds = 0.01},
                                         {.sequences = 4, .seconds = 0.01}}};
  const auto sustained = [&](int64_t sequences) {
    return simulate_queue(measured, {.prompts = 1, .sequences = sequences, .tokens = 5}, 1, 5000, 1)
        .sustained_rate;
  };
  EXPECT_NEAR(sustained(1), 20, 0.1) << "a prompt and four tokens, one after the other";
  EXPECT_GT(sustained(4), 2 * sustained(1));
  const QueueFigures busy = simulate_queue(measured, {.prompts = 1, .sequences = 4, .tokens = 5},
                                           0.9 * sustained(4), 20000, 1);
  EXPECT_GT(busy.token_p99_s, 0.015) << "tokens wait for prompts";
  EXPECT_GT(busy.utilisation, 0.8);
  EXPECT_LE(busy.utilisation, 1);
}

TEST(Queue, ASeedDecidesAll) {
  const auto run = [](uint64_t seed) {
    return simulate_queue(prompts_alone(0.01), {}, 50, 1000, seed).wait_s;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

TEST(Queue, TimesBetweenMeasuredNumbersAreInterpolated) {
  const std::vector<ServedCall> calls = {{.prompt = 8, .seconds = 9},
                                         {.sequences = 1, .seconds = 1},
                                         {.sequences = 4, .seconds = 4},
                                         {.sequences = 8, .seconds = 6}};
  EXPECT_EQ(token_call_s(calls, 1), 1);
  EXPECT_EQ(token_call_s(calls, 3), 3);
  EXPECT_EQ(token_call_s(calls, 6), 5);
  EXPECT_TRUE(says(fault_of([&] { token_call_s(calls, 9); }), "more than 9 sequences"));
}

TEST(Queue, WrongUse) {
  EXPECT_TRUE(says(fault_of([] { simulate_queue(prompts_alone(1), {}, 0, 10, 1); }),
                   "arrivals of 0 requests a second"));
  const MeasuredCalls other{.prompts = {9}, .calls = prompts_alone(1).calls};
  EXPECT_TRUE(says(fault_of([&] { simulate_queue(other, {}, 1, 10, 1); }),
                   "no call of a prompt of 9 positions"));
}

TEST(Queue, EachPromptAndNumbersOfSequencesAreTimed) {
  EXPECT_EQ(groups_to_time(parse_mixed_batch("2q64_q32_2q1kv1k")),
            (MixedBatch{{.count = 1, .queries = 32, .total = 32},
                        {.count = 1, .queries = 64, .total = 64},
                        {.count = 1, .queries = 1, .total = 69},
                        {.count = 2, .queries = 1, .total = 69},
                        {.count = 4, .queries = 1, .total = 69},
                        {.count = 5, .queries = 1, .total = 69}}));
}

TEST(Queue, AWordSaysWhatRequestsAre) {
  const ServedRequests found = requests_of(parse_mixed_batch("2q64_q128_3q1kv40_q1kv80"));
  EXPECT_EQ(found.prompts, (std::vector<int64_t>{64, 64, 128}));
  EXPECT_EQ(found.rule.prompts, 3);
  EXPECT_EQ(found.rule.sequences, 7);
  EXPECT_EQ(found.rule.tokens, kServedCalls);
  EXPECT_EQ(found.cache, (64 + 64 + 128) / 3 + kServedCalls / 2) << "not the word's own caches";
  EXPECT_EQ(requests_of(parse_mixed_batch("q64")).cache, 64 + 16);
  EXPECT_EQ(why_no_arrivals(parse_mixed_batch("q64")).value_or(""), "");
  EXPECT_TRUE(says(why_no_arrivals(parse_mixed_batch("q1kv8")).value_or(""), "no prompts"));
  EXPECT_TRUE(says(why_no_arrivals(parse_mixed_batch("q8_q4kv8")).value_or(""), "4 positions"));
}

}  // namespace
}  // namespace attn::queue_test
