// Served batches: each answer is that of one pass, of every kind of state; the answers are those of
// the sequences asked for; states, FLOPs and times; and wrong answers are refused.
#include "harness/measure/serving.h"

#include <gtest/gtest.h>

#include "core/base/parallel.h"
#include "harness/check/subject.h"
#include "harness/verify/served.h"
#include "tests/said.h"
#include "variants/catalog.h"

namespace attn {
namespace variants {
VariantInfo late_fault();
}  // namespace variants

namespace serving_test {
namespace {

WorkloadSpec spec_of(const VariantInfo& info, const std::string& word, int64_t kv_heads = 0) {
  WorkloadSpec spec{.variant = &info, .heads = 4, .head_dim = 16, .kv_heads = kv_heads};
  spec.served = parse_mixed_batch(word);
  spec.length = longest_of(spec.served);
  spec.batch = sequences_of(spec.served);
  spec.mode = Mode::serve;
  spec.causal = true;
  return spec;
}

// "" where all answers are right.
std::string refusal(const WorkloadSpec& spec) {
  Serving serving(spec);
  serving.time_rounds(2);
  return fault_of([&] { verify_served(serving, 60); });
}

TEST(Serving, EveryKindOfStateAnswersAsOnePass) {
  for (const char* name : {"full", "linear", "local", "mamba2", "gated_deltanet", "mla",
                           "cosformer", "long_conv", "reformer", "mlstm"}) {
    const VariantInfo* const info = variant_named(name);
    if (!info || !info->traits.decode) continue;
    EXPECT_EQ(refusal(spec_of(*info, "2q70_3q1kv33_q5kv67_q1")), "") << name;
  }
}

TEST(Serving, SharedHeadsAndTypedCaches) {
  EXPECT_EQ(refusal(spec_of(find_variant("full"), "2q40_3q1kv65", 2)), "");
  WorkloadSpec typed = spec_of(find_variant("full"), "2q40_3q2kv65", 2);
  for (const CacheType cache : {CacheType::int8, CacheType::int4, CacheType::bfloat16}) {
    typed.cache = cache;
    EXPECT_EQ(refusal(typed), "");
  }
}

TEST(Serving, AnswersAreOfTheSequenceAskedFor) {
  Serving serving(spec_of(find_variant("full"), "3q6_2q2kv9"));
  serving.time_rounds(1);
  const ScopedThreads as_before(threads());
  for (size_t group = 0; group < serving.groups(); ++group) {
    const int64_t count = serving.spec().served[group].count;
    for (int64_t sequence = 0; sequence < count; ++sequence)
      for (const bool in_last : {false, true}) {
        const SeenPass seen = serving.seen(group, sequence, in_last);
        const int64_t n = seen.q.dim(2), answered = seen.out.dim(2);
        EXPECT_EQ(n, serving.spec().served[group].total + (in_last ? kServedCalls - 1 : 0));
        EXPECT_EQ(answered, in_last ? 1 : serving.spec().served[group].queries);
        const Tensor all = output_of(*seen.attention, {seen.q, seen.k, seen.v}, {true, {}});
        EXPECT_LT(gap(seen.out, part(all, 2, n - answered, n)).size, 1e-5);
        if (sequence > 0) {
          EXPECT_GT(gap(seen.out, serving.seen(group, 0, in_last).out).size, 1e-2);
        }
      }
  }
}

TEST(Serving, RoundsHaveOtherAnswers) {
  Serving serving(spec_of(find_variant("full"), "q6_q2kv9"));
  serving.time_rounds(1);
  std::vector<Tensor> before;
  for (size_t group = 0; group < 2; ++group) before.push_back(serving.seen(group, 0, false).out);
  serving.time_rounds(1);
  for (size_t group = 0; group < 2; ++group)
    EXPECT_GT(gap(serving.seen(group, 0, false).out, before[group]).size, 1e-3) << group;
}

// A prompt's first answers are right; then those of the pass, or of the state, are wrong, or are
// those of the round before.
TEST(Serving, WrongAnswersAreRefused) {
  const VariantInfo info = variants::late_fault();
  const auto refused = [&](const char* fault, const char* word) {
    WorkloadSpec spec = spec_of(info, word);
    spec.params = {{"fault", std::string(fault)}, {"from", int64_t{40}}};
    return refusal(spec);
  };
  EXPECT_EQ(refused("none", "2q64_2q2kv60"), "");
  for (const char* fault : {"values", "scale", "last_tile", "head", "kept"})
    EXPECT_TRUE(says(refused(fault, "2q1kv30_2q64"),
                     "group 2 of workload 2q1kv30_2q64, sequence 1, first call: row"))
        << fault;
  EXPECT_TRUE(says(refused("decoder", "2q8_2q2kv60"),
                   "group 2 of workload 2q8_2q2kv60, sequence 1, first call: row"));
  EXPECT_TRUE(says(refused("decoder", "q20"), "sequence 1, last call: row 50"))
      << "the prompt's tokens go beyond what is right";
}

TEST(Serving, TimesStatesAndFlops) {
  const VariantInfo& full = find_variant("full");
  Serving serving(spec_of(full, "2q40_3q1kv65", 2));
  const ServedTimes times = serving.time_rounds(3);
  EXPECT_EQ(times.first_s.size(), 3u);
  EXPECT_EQ(times.later_s.size(), static_cast<size_t>(3 * (kServedCalls - 1)));
  for (const double seconds : times.later_s) EXPECT_GT(seconds, 0);
  EXPECT_TRUE(serving.has_run());
  // Keys and values of two heads.
  EXPECT_EQ(serving.state_bytes(), (2 * 40 + 3 * 65) * 2 * 2 * 16 * 4);
  // Of the steps: 4·d FLOPs a key and head. Those of the prompts are more than half of a square's.
  const double steps = 3 * 65 * 4.0 * 4 * 16, square = 2 * 40 * 40 * 4.0 * 4 * 16;
  const double counted = serving.first_call_flops();
  EXPECT_GT(counted, steps + square / 2);
  EXPECT_LT(counted, steps + 3 * square);
}

// Its answers are not those of one pass, which they are compared with.
TEST(Serving, ADecoderThatForgetsServesNone) {
  WorkloadSpec spec = spec_of(find_variant("full"), "q8_2q1kv6");
  EXPECT_FALSE(why_not(spec).has_value());
  spec.params = {{"evict", std::string("recent")}, {"budget", 4.0}};
  EXPECT_NE(why_not(spec).value().find("forgets"), std::string::npos);
}

TEST(Serving, WhatIsNoneIsRefused) {
  WorkloadSpec spec = spec_of(find_variant("full"), "q8");
  EXPECT_TRUE(says(fault_of([&] { Workload w(spec); }), "mode serve"));
  EXPECT_TRUE(says(fault_of([&] { Serving(spec).seen(0, 0, false); }), "no round has run"));
  spec.mode = Mode::decode;
  EXPECT_NE(fault_of([&] { Serving s(spec); }), "");
}

}  // namespace
}  // namespace serving_test
}  // namespace attn
