// Packed passes: each sequence is answered and differentiated as alone, of every kind of state; the
// padded pass answers the same; FLOPs are those of the sequences; and what cannot be packed.
#include "harness/measure/packed_pass.h"

#include <gtest/gtest.h>

#include "core/base/counters.h"
#include "core/base/parallel.h"
#include "harness/check/subject.h"
#include "harness/measure/packed_lengths.h"
#include "harness/verify/packed.h"
#include "tests/said.h"
#include "variants/catalog.h"

namespace attn::packed_pass_test {
namespace {

WorkloadSpec spec_of(const std::string& variant, Mode mode,
                     const std::string& word = "2q33_q1_q70_q6") {
  WorkloadSpec spec{.variant = &find_variant(variant), .heads = 4, .head_dim = 8};
  spec.packed = packed_lengths(word, 0, 0, 0);
  spec.batch = std::ssize(spec.packed);
  spec.length = *std::max_element(spec.packed.begin(), spec.packed.end());
  spec.mode = mode;
  spec.causal = spec.variant->traits.causal;
  return spec;
}

TEST(PackedPass, EveryKindOfStateAnswersAsAlone) {
  const ScopedThreads as_before(threads());
  for (const char* name :
       {"full", "linear", "local", "mamba2", "gla", "gated_deltanet", "mamba", "recurrent",
        "long_conv", "hyena", "conv", "reformer", "linformer", "fnet", "gmlp", "topk", "sinkhorn"})
    for (const int threads : {1, 2})
      for (const Mode mode : {Mode::forward, Mode::train}) {
        WorkloadSpec spec = spec_of(name, mode);
        spec.threads = threads;
        PackedPass pass(spec);
        for (int i = 0; i < 2; ++i) pass.run();
        Verified found;
        EXPECT_EQ(fault_of([&] { found = verify_packed(pass); }), "") << name << " " << threads;
        EXPECT_GT(found.rows, 0) << name;
        EXPECT_EQ(found.gradient_error.has_value(), mode == Mode::train) << name;
        EXPECT_EQ(found.by, VerifiedBy::reference) << name;
      }
}

TEST(PackedPass, SharedKeys) {
  const ScopedThreads as_before(threads());
  for (const char* name : {"full", "linear"}) {
    WorkloadSpec spec = spec_of(name, Mode::train);
    spec.kv_heads = 2;
    PackedPass pass(spec);
    pass.run();
    EXPECT_EQ(fault_of([&] { verify_packed(pass); }), "") << name;
  }
}

// Where references take too long, each sequence alone stands in for them.
TEST(PackedPass, WithoutTimeForReferences) {
  const ScopedThreads as_before(threads());
  PackedPass pass(spec_of("full", Mode::train));
  pass.run();
  const Verified found = verify_packed(pass, {.budget_s = 0});
  EXPECT_EQ(found.by, VerifiedBy::pieces);
  EXPECT_EQ(found.identities, std::vector<std::string>{"alone"});
}

TEST(PackedPass, PassesHaveOtherAnswersAndThePaddedOneToo) {
  const ScopedThreads as_before(threads());
  PackedPass pass(spec_of("full", Mode::forward));
  pass.run();
  const Tensor first = pass.seen(3).out.clone(), last = pass.seen(4).out.clone();
  pass.run();
  EXPECT_EQ(gap(pass.seen(3).out, first).size, 0);
  EXPECT_GT(gap(pass.seen(4).out, last).size, 1e-3) << "a row of the last sequence changes";
  ASSERT_TRUE(pass.has_padded());
  pass.run_padded();
}

TEST(PackedPass, FlopsAreThoseOfTheSequences) {
  const ScopedThreads as_before(threads());
  for (const Mode mode : {Mode::forward, Mode::train})
    for (const char* name : {"full", "linear"}) {
      PackedPass pass(spec_of(name, mode));
      pass.run();
      const double before = counters().flops;
      pass.run();
      const double counted = counters().flops - before;
      EXPECT_NEAR(pass.flops() / counted, 1, 0.05) << name;
      EXPECT_EQ(pass.bytes().has_value(), mode == Mode::forward);
    }
}

TEST(PackedPass, WhatCannotBePackedSaysWhy) {
  const auto reason = [](const std::string& variant, Mode mode, auto change) {
    WorkloadSpec spec = spec_of(variant, mode);
    change(spec);
    return why_not(spec).value_or("");
  };
  const auto as_it_is = [](WorkloadSpec&) {};
  EXPECT_EQ(reason("full", Mode::forward, as_it_is), "");
  EXPECT_TRUE(says(reason("full", Mode::decode, as_it_is), "modes forward and train"));
  EXPECT_TRUE(says(reason("full", Mode::forward, [](auto& spec) { spec.scope = ScopeKind::layer; }),
                   "scope attention alone"));
  EXPECT_TRUE(says(reason("full", Mode::forward, [](auto& spec) { spec.dtype = Dtype::bfloat16; }),
                   "float32"));
  EXPECT_TRUE(says(reason("linformer", Mode::forward, [](auto& spec) { spec.causal = true; }),
                   "cannot be causal (a sequence of 33 positions)"));
}

}  // namespace
}  // namespace attn::packed_pass_test
