// The answer that was measured is compared at its own shape: late faults are refused, sound
// variants pass, and what was compared is told.
#include "harness/verify/verify.h"

#include <gtest/gtest.h>

#include <chrono>
#include <ostream>
#include <string>
#include <thread>

#include "core/base/parallel.h"
#include "harness/verify/chosen_rows.h"
#include "harness/verify/tokens.h"
#include "variants/catalog.h"
#include "tests/said.h"

namespace attn {
namespace variants {
VariantInfo late_fault();
VariantInfo bare_fault();
}  // namespace variants

namespace verify_test {
namespace {

const VariantInfo& late_fault() {
  static const VariantInfo info = variants::late_fault();
  return info;
}
const VariantInfo& bare_fault() {
  static const VariantInfo info = variants::bare_fault();
  return info;
}

struct Case {
  const char* fault;
  Mode mode = Mode::forward;
  Dtype dtype = Dtype::float32;
  int threads = 1;
  bool seen_by_identities = true;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.fault << " " << to_string(c.mode); }

WorkloadSpec spec_of(const VariantInfo& info, const Case& c, bool causal, int64_t length) {
  return {.variant = &info,
          .params = {{"fault", std::string(c.fault)}},
          .length = length,
          .heads = 2,
          .head_dim = 16,
          .dtype = c.dtype,
          .mode = c.mode,
          .causal = causal || c.mode == Mode::decode,
          .threads = c.threads};
}

// "" where the workload passes.
std::string refusal(const WorkloadSpec& spec) {
  const ScopedThreads as_before(threads());
  Workload workload(spec);
  for (int i = 0; i < 3; ++i) workload.run();
  try {
    verify(workload);
  } catch (const WrongAnswer& error) {
    return error.what();
  }
  return "";
}

class LateFaults : public testing::TestWithParam<Case> {};

TEST_P(LateFaults, AreRefusedWhereTheyAre) {
  for (const bool causal : {false, true}) {
    if (GetParam().mode == Mode::decode && !causal) continue;
    EXPECT_NE(refusal(spec_of(late_fault(), GetParam(), causal, 2048)), "") << causal;
    EXPECT_EQ(refusal(spec_of(late_fault(), GetParam(), causal, 1050)), "") << causal;
  }
}

TEST_P(LateFaults, AreRefusedWithoutAReference) {
  if (!GetParam().seen_by_identities) GTEST_SKIP() << "no identity sees it";
  for (const bool causal : {false, true}) {
    if (GetParam().mode == Mode::decode && !causal) continue;
    const std::string found = refusal(spec_of(bare_fault(), GetParam(), causal, 2048));
    EXPECT_NE(found, "") << causal;
    EXPECT_EQ(refusal(spec_of(bare_fault(), GetParam(), causal, 1050)), "") << causal;
  }
}

INSTANTIATE_TEST_SUITE_P(All, LateFaults,
                         testing::Values(Case{"values"}, Case{"scale"}, Case{"last_tile"},
                                         Case{"index"}, Case{"head"}, Case{"channel"},
                                         Case{"gradient_k", Mode::train},
                                         Case{"threads", Mode::forward, Dtype::float32, 2},
                                         Case{"state"}, Case{"kept"}, Case{"values", Mode::train},
                                         Case{"decoder", Mode::decode},
                                         Case{"bfloat16", Mode::forward, Dtype::bfloat16}));

TEST(Verify, PassesWhatIsRight) {
  for (const Mode mode : {Mode::forward, Mode::train, Mode::decode}) {
    EXPECT_EQ(refusal(spec_of(late_fault(), {"none", mode}, true, 2048)), "");
    EXPECT_EQ(refusal(spec_of(bare_fault(), {"none", mode}, true, 2048)), "");
  }
  EXPECT_EQ(refusal(spec_of(late_fault(), {"none", Mode::forward, Dtype::bfloat16}, false, 2048)),
            "");
}

TEST(Verify, FaultsOfTwoThreadsAreNotOfOne) {
  EXPECT_EQ(refusal(spec_of(late_fault(), {"threads"}, true, 2048)), "");
}

TEST(Verify, TellsWhichRowAndByHowMuch) {
  const std::string found = refusal(spec_of(late_fault(), {"values"}, true, 2048));
  for (const char* part : {"row ", " of head ", "where the reference gives", "allowed"})
    EXPECT_TRUE(says(found, part));
  const std::string gradient =
      refusal(spec_of(late_fault(), {"gradient_k", Mode::train}, true, 2048));
  EXPECT_TRUE(says(gradient, "the gradient of k is off by"));
}

TEST(Verify, SaysWhatWasCompared) {
  Workload workload(spec_of(late_fault(), {"none", Mode::train}, true, 1536));
  workload.run();
  const Verified found = verify(workload);
  EXPECT_EQ(found.by, VerifiedBy::reference);
  EXPECT_EQ(found.shape, (std::vector<int64_t>{1, 2, 1536, 16}));
  EXPECT_GE(found.rows, 64);
  EXPECT_LE(found.error, found.bound);
  ASSERT_TRUE(found.gradient_error);
  EXPECT_LE(*found.gradient_error, *found.gradient_bound);

  Workload bare(spec_of(bare_fault(), {"none"}, false, 1536));
  bare.run();
  const Verified alone = verify(bare);
  EXPECT_EQ(alone.by, VerifiedBy::identities);
  EXPECT_FALSE(alone.identities.empty());
}

// A layer's and a model's attention is compared as it stands there.
TEST(Verify, RefusesWhatStandsInALayer) {
  for (const ScopeKind scope : {ScopeKind::layer, ScopeKind::model})
    for (const Mode mode : {Mode::forward, Mode::train}) {
      WorkloadSpec spec = spec_of(late_fault(), {"none", mode}, true, 1300);
      spec.scope = scope;
      EXPECT_EQ(refusal(spec), "");
      spec.params["fault"] = std::string("head");
      EXPECT_NE(refusal(spec), "");
      if (mode != Mode::train) continue;
      spec.params["fault"] = std::string("gradient_k");
      EXPECT_NE(refusal(spec), "");
    }
}

TEST(Verify, QueryHeadsThatShareKeys) {
  for (const Mode mode : {Mode::forward, Mode::train, Mode::decode}) {
    WorkloadSpec spec = spec_of(late_fault(), {"none", mode}, true, 1300);
    spec.heads = 4;
    spec.kv_heads = 2;
    EXPECT_EQ(refusal(spec), "");
  }
}

// Where a reference takes too long, its first piece and identities stand in for it.
TEST(Verify, ComparesInPiecesWhatTakesTooLong) {
  const VerifyOptions no_time{.budget_s = 0};
  for (const Mode mode : {Mode::forward, Mode::train}) {
    Workload workload(spec_of(late_fault(), {"none", mode}, true, 2100));
    workload.run();
    const Verified found = verify(workload, no_time);
    EXPECT_EQ(found.by, VerifiedBy::pieces);
    EXPECT_FALSE(found.identities.empty());
    EXPECT_EQ(found.gradient_error.has_value(), mode == Mode::train);
  }
  Workload tokens(spec_of(late_fault(), {"none", Mode::decode}, true, 2100));
  for (int i = 0; i < 2; ++i) tokens.run();
  const ComparedTokens compared = compare_tokens(tokens, true, false);
  EXPECT_EQ(compared.by, VerifiedBy::pieces);
  EXPECT_FALSE(compared.compared.fault);
  Workload wrong(spec_of(late_fault(), {"values"}, true, 2100));
  wrong.run();
  EXPECT_THROW(verify(wrong, no_time), WrongAnswer);
}

// The forward pass that would stand in for it takes hundreds of times as long; or, where the
// reference is slow, less.
TEST(Verify, ATokenOfALongCacheIsComparedWithTheReferenceUnlessAForwardPassIsFaster) {
  const auto compared_by = [](const VariantInfo& variant, int64_t length) {
    WorkloadSpec spec = spec_of(late_fault(), {"none", Mode::decode}, true, length);
    spec.variant = &variant;
    Workload workload(spec);
    for (int i = 0; i < 2; ++i) workload.run();
    const Verified found = verify(workload, {.budget_s = 0});
    EXPECT_EQ(found.identities.empty(), found.by == VerifiedBy::reference);
    return found.by;
  };
  EXPECT_EQ(compared_by(late_fault(), 16384), VerifiedBy::reference);
  VariantInfo slow = late_fault();
  slow.reference = [quick = slow.reference](const ReferenceInputs& inputs) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return quick(inputs);
  };
  EXPECT_EQ(compared_by(slow, 2100), VerifiedBy::pieces);
}

// A weight that fades over the longest length hardly differs over a short one: what holds there is
// no identity.
TEST(Verify, AsksNoIdentityThatHoldsOnlyWhenShort) {
  const VariantInfo& info = find_variant("cosformer");
  const WorkloadSpec spec{
      .variant = &info, .length = 4096, .heads = 1, .head_dim = 16, .causal = true};
  Workload workload(spec);
  workload.run();
  const Verified found = verify(workload, {.budget_s = 0});
  EXPECT_EQ(found.by, VerifiedBy::pieces);
}

// Two blocks of hierarchical are exact attention, to which copies of a piece are the piece; more
// blocks are not. The reference decides, and still refuses what is wrong.
TEST(Verify, AnIdentityOfShortSequencesRefusesNoRightAnswer) {
  for (const bool causal : {false, true}) {
    Workload workload({.variant = &find_variant("hierarchical"),
                       .length = 512,
                       .heads = 1,
                       .head_dim = 16,
                       .causal = causal});
    workload.run();
    EXPECT_EQ(verify(workload, {.budget_s = -1}).by, VerifiedBy::reference);
  }
}

// Along a direction many relus of keys have their kink within a step: a shorter one tells.
TEST(Verify, DifferencesAcrossManyKinksRefuseNoRightGradient) {
  const VariantInfo& info = find_variant("cosformer");
  const WorkloadSpec spec{.variant = &info,
                          .length = 16384,
                          .heads = 1,
                          .head_dim = 64,
                          .mode = Mode::train,
                          .causal = true};
  Workload workload(spec);
  workload.run();
  const Verified found = verify(workload, {.budget_s = 0});
  EXPECT_EQ(found.identities.front(), "differences");
  EXPECT_LT(found.gradient_error.value(), 1e-2);
}

// Queries, keys and what makes rows move a choice; values do not.
TEST(Verify, DifferencesAcrossAChoiceRefuseNoRightGradient) {
  Workload workload({.variant = &find_variant("csa"),
                     .params = {{"keys", 40}, {"window", 7}},
                     .length = 2048,
                     .heads = 1,
                     .head_dim = 16,
                     .mode = Mode::train,
                     .causal = true});
  workload.run();
  const Verified found = verify(workload, {.budget_s = 0});
  EXPECT_EQ(found.identities.front(), "differences");
  EXPECT_LT(found.gradient_error.value(), 1e-2);
}

// The inputs of a draw are others, and so is a row of each pass.
TEST(Verify, EveryDrawHasInputsOfItsOwn) {
  WorkloadSpec spec = spec_of(late_fault(), {"none"}, true, 70);
  Workload first(spec);
  spec.draw = 1;
  Workload other(spec);
  first.run();
  other.run();
  const SeenPass a = first.seen()[0], b = other.seen()[0];
  EXPECT_NE(a.k[0], b.k[0]);
  const Tensor before = a.q.clone();
  first.run();
  EXPECT_NE(first.seen()[0].q[69 * 16], before[69 * 16]);
  EXPECT_EQ(first.seen()[0].q[0], before[0]);
}

// Tokens of a sum stay in its state, and those with positions at one position: no sequence is so.
TEST(Verify, DecodersOfEveryKindOfState) {
  for (const char* name :
       {"full", "truncated", "linear", "retention", "cosformer", "mamba", "reformer"})
    for (const Dtype dtype : {Dtype::float32, Dtype::bfloat16}) {
      const VariantInfo& info = find_variant(name);
      const WorkloadSpec spec{.variant = &info,
                              .length = 300,
                              .heads = 4,
                              .head_dim = 16,
                              .kv_heads = 2,
                              .dtype = dtype,
                              .mode = Mode::decode,
                              .causal = true};
      if (why_not(spec)) continue;
      EXPECT_EQ(refusal(spec), "") << name;
    }
}

TEST(ChosenRows, HaveEndsAndEdges) {
  const std::vector<int64_t> rows = chosen_rows(4096, 64, rng(1, "rows"));
  EXPECT_EQ(rows.size(), 64u);
  for (const int64_t row : {0, 4095, 4063, 4064, 4031, 4032, 3967, 3968, 3583, 3584})
    EXPECT_TRUE(std::binary_search(rows.begin(), rows.end(), row)) << row;
  EXPECT_EQ(chosen_rows(10, 64, rng(1, "rows")).size(), 10u);
  EXPECT_GE(positions_to_compare(1, 1), 64);
  EXPECT_GE(8 * positions_to_compare(1, 8), 64);
}

}  // namespace
}  // namespace verify_test
}  // namespace attn
