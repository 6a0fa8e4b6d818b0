// Packed passes: each sequence is answered and differentiated as alone, of every kind of state, and
// as in the padded batch; FLOPs are those of the sequences; and what cannot be packed.
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
        for (int i = 0; i < 2; ++i) pass.run_both();
        EXPECT_EQ(pass.ran_both(), pass.has_padded()) << name;
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
    pass.run_both();
    EXPECT_EQ(fault_of([&] { verify_packed(pass); }), "") << name;
  }
}

// Where references take too long, first pieces, identities and each sequence alone stand in.
TEST(PackedPass, WithoutTimeForReferences) {
  const ScopedThreads as_before(threads());
  PackedPass pass(spec_of("full", Mode::train));
  pass.run();
  const Verified found = verify_packed(pass, {.budget_s = 0});
  EXPECT_EQ(found.by, VerifiedBy::pieces);
  ASSERT_GT(found.identities.size(), 1u);
  EXPECT_EQ(found.identities[0], "alone");
  WorkloadSpec spec = spec_of("full", Mode::forward);
  spec.causal = false;
  PackedPass both_ways(spec);
  both_ways.run();
  EXPECT_EQ(verify_packed(both_ways, {.budget_s = 0}).by, VerifiedBy::identities)
      << "no piece is compared with the reference";
}

TEST(PackedPass, ARowOfEverySequenceChanges) {
  const ScopedThreads as_before(threads());
  PackedPass pass(spec_of("full", Mode::forward));
  const int64_t count = pass.packing().count();
  std::vector<Tensor> packed, padded;
  pass.run_both();
  for (int64_t s = 0; s < count; ++s) {
    packed.push_back(pass.seen(s).out.clone());
    padded.push_back(pass.padded_output(s));
  }
  pass.run_both();
  for (int64_t s = 0; s < count; ++s) {
    EXPECT_GT(gap(pass.seen(s).out, packed[static_cast<size_t>(s)]).size, 1e-3) << s;
    EXPECT_GT(gap(pass.padded_output(s), padded[static_cast<size_t>(s)]).size, 1e-3) << s;
    EXPECT_LT(gap(pass.seen(s).out, pass.padded_output(s)).size, 1e-5) << s;
  }
  pass.run_padded();
  EXPECT_FALSE(pass.ran_both());
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
