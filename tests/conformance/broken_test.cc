// Variants with a planted fault fail the check meant for it; those of `attnbench new` fail none.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "harness/check/contract.h"
#include "harness/check/process_memory.h"
#include "tests/conformance/planted.h"
#include "tests/conformance/planted_softmax.h"
#include "variants/api/variant_info.h"

namespace attn::variants {
VariantInfo made_pattern();  // made from templates/ by tests/conformance/templates.cmake
VariantInfo made_scores();
VariantInfo made_kernel();
VariantInfo made_mixer();
}  // namespace attn::variants

namespace attn::broken_test {
namespace {

// The checks of variants check: a right variant passes everything, each planted fault turns exactly
// the intended checks red.

using attn_check::Level;
using attn_check::Outcome;
using attn_check::Result;

TEST(Textbook, PassesEveryCheck) {
  const auto results = check_variant(textbook(), {}, Level::full);
  EXPECT_TRUE(all_passed(results)) << lines(results);
  EXPECT_EQ(results.size(), variant_check_names(textbook()).size());
  for (const Result& result : results) EXPECT_EQ(result.outcome, Outcome::passed) << result.name;
}

TEST(Textbook, MeetsTheQuickLevelWithFewerChecks) {
  const auto quick = check_variant(textbook(), {}, Level::quick);
  EXPECT_TRUE(all_passed(quick)) << lines(quick);
  EXPECT_LT(quick.size(), variant_check_names(textbook()).size());
}

TEST(Textbook, OnlyRunsTheNamedCheck) {
  const auto results = check_variant(textbook(), {}, Level::full, "heads");
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].name, "heads");
}

TEST(Surrogate, GradientsThatAreDeclaredPass) {
  const auto results = check_variant(surrogate(), {}, Level::quick);
  EXPECT_TRUE(all_passed(results)) << lines(results);
  VariantInfo undeclared = surrogate();
  undeclared.surrogate_if = [](const Params&) { return false; };
  EXPECT_EQ(red(check_variant(undeclared, {}, Level::quick)),
            (std::vector<std::string>{"gradients", "reference"}));
}

TEST(Surrogate, TraitAndDeclarationBelongTogether) {
  const AttentionConfig config{.heads = 1, .head_dim = 2, .max_len = 3, .params = {}};
  EXPECT_NO_THROW(surrogate().build(config, {}));
  VariantInfo promised = surrogate(), silent = surrogate(), unreferenced = surrogate();
  promised.surrogate = nullptr;
  silent.traits.surrogate_gradients = false;
  unreferenced.reference = nullptr;
  for (const VariantInfo* info : {&promised, &silent, &unreferenced})
    EXPECT_THROW(info->build(config, {}), Error);
}

TEST(Throwing, IsAFailedResultAndNotAnException) {
  const auto results = check_variant(throwing(), {}, Level::full, "range");
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].outcome, Outcome::failed);
  EXPECT_EQ(results[0].detail, "threw: sevens are not served");
}

TEST(Skipped, SaysWhy) {
  VariantInfo never = textbook();
  never.skip_reason = [](const AttentionShape&, const Params&) { return "the moon is full"; };
  const auto results = check_variant(never, {}, Level::quick, "linearity");
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].outcome, Outcome::skipped);
  EXPECT_EQ(results[0].detail, "the moon is full");
}

TEST(WrongParameter, IsAnError) {
  EXPECT_THROW(check_variant(textbook(), {{"rank", int64_t{3}}}, Level::quick), Error);
}

// The decoder takes head h % kv_heads of the keys: wrong where several heads of keys are shared.
TEST(PublishedShape, WithSharedKeysIsDecodedWithThem) {
  const auto broken = broken_variants();
  const auto tiled = std::find_if(broken.begin(), broken.end(), [](const BrokenVariant& one) {
    return one.info.name == "tiled_keys";
  });
  ASSERT_NE(tiled, broken.end());
  const AttentionShape shape{.heads = 8, .head_dim = 8, .causal = true};
  EXPECT_TRUE(all_passed(check_variant_at(tiled->info, {}, shape, 1)));
  EXPECT_EQ(red(check_variant_at(tiled->info, {}, shape, 1, 4)), tiled->red);
  const auto right = check_variant_at(textbook(), {}, shape, 1, 4);
  ASSERT_EQ(right.size(), 1U) << "decoding alone";
  EXPECT_EQ(right[0].outcome, Outcome::passed) << lines(right);
}

// As where weights are computed outside the tape: the output moves, the gradient says it does not.
TEST(Detached, AGradientOfZeroIsSaidAndNotThatNothingMoves) {
  const auto detached = [](const Var& weights, const Pass&) {
    return Var(weights.value().clone());
  };
  const VariantInfo info = softmax_with("detached", {.weights = detached},
                                        {.causal = true, .linear_memory = false}, true);
  const auto results = check_variant(info, {}, Level::quick, "gradients");
  ASSERT_EQ(red(results), std::vector<std::string>{"gradients"});
  EXPECT_EQ(results[0].detail, "the gradient of k is 0 at every shape, though k moves the output");
}

TEST(Remarks, NameTheRedCheckToMendFirst) {
  const auto failed = [](const std::string& name) {
    return Result{"mine", name, Outcome::failed, "because"};
  };
  const auto first = [](const std::vector<Result>& results) {
    const auto remarks = remarks_on(results, true);
    return remarks.empty() ? "" : remarks.at(0);
  };
  const std::vector<Result> leak = {{"mine", "batch", Outcome::passed, ""},
                                    failed("gradients"),
                                    failed("reference"),
                                    failed("causality"),
                                    failed("reference (double)")};
  EXPECT_EQ(first(leak), "mine: mend causality first; the other red checks may follow from it");
  EXPECT_TRUE(first({failed("causality"), failed("calls")}).starts_with("mine: mend calls first"));
  EXPECT_TRUE(first({failed("calls"), failed("range")}).starts_with("mine: mend range first"));
  Result threw = failed("heads");
  threw.detail = "threw: IndexError";
  EXPECT_TRUE(first({failed("range"), threw}).starts_with("mine: mend heads first"));
  EXPECT_TRUE(first({failed("heads"), failed("exact")}).starts_with("mine: mend heads first"));
  EXPECT_EQ(first({failed("causality"), failed("causality (double)")}), "") << "there is one";
  EXPECT_EQ(first({{"mine", "batch", Outcome::passed, ""}}), "");
}

TEST(Remarks, SayWhereAWrongFormulaWouldNotBeSeen) {
  const std::vector<Result> results = {{"mine", "batch", Outcome::passed, ""}};
  ASSERT_EQ(remarks_on(results, false).size(), 1U);
  EXPECT_TRUE(remarks_on(results, false)[0].starts_with("mine: unreferenced: a wrong formula"));
  EXPECT_TRUE(remarks_on(results, true).empty());
  EXPECT_TRUE(remarks_on({}, false).empty());
}

class BrokenVariants : public testing::TestWithParam<BrokenVariant> {};
TEST_P(BrokenVariants, TurnsExactlyTheIntendedCheckRed) {
  // All but bits and threads must show at the quick level already: it is what `run` asks for.
  const std::string& last = GetParam().red.back();
  const Level level = last == "determinism" || last == "threads" ? Level::full : Level::quick;
  const auto results = check_variant(GetParam().info, {}, level);
  // The check of bfloat16 compares passes and steps with the reference too, so it sees many faults
  // of others.
  std::vector<std::string> found = red(results);
  if (last != "bfloat16") std::erase(found, "bfloat16");
  EXPECT_EQ(found, GetParam().red) << lines(results);
}
// Of those that show in float too, the float program looks at what turns red.
std::vector<BrokenVariant> broken_here() {
  std::vector<BrokenVariant> all = broken_variants();
  if (kIsDouble)
    std::erase_if(all, [](const BrokenVariant& one) {
      return std::find(one.red.begin(), one.red.end(), "gradients") == one.red.end();
    });
  return all;
}
INSTANTIATE_TEST_SUITE_P(Planted, BrokenVariants, testing::ValuesIn(broken_here()),
                         [](const auto& one) { return one.param.info.name; });

// The checks of variants check: each planted fault of planted.h is caught by the check
// that is meant to, at the level that is meant to; the same variant without a fault passes.

// In double, where the checks are compiled for gradients, what also shows in float is left to
// float.
constexpr Level kLevel = kIsDouble ? Level::quick : Level::full;

TEST(Faultless, PassesEveryCheck) {
  for (const bool referenced : {false, true}) {
    const auto results = check_variant(faultless(referenced), {}, kLevel);
    EXPECT_TRUE(all_passed(results)) << lines(results);
  }
  const auto gated = check_variant(faultless_gated(true), {}, kLevel);
  EXPECT_TRUE(all_passed(gated)) << lines(gated);
}

// A variant that throws is red too, but not for its fault.
void expect_measured(const std::vector<attn_check::Result>& results) {
  for (const attn_check::Result& result : results)
    EXPECT_FALSE(result.detail.starts_with("threw")) << lines({result});
}

class PlantedVariants : public testing::TestWithParam<PlantedVariant> {};
TEST_P(PlantedVariants, AreCaughtByTheCheckThatIsMeantTo) {
  const PlantedVariant& planted = GetParam();
  if (planted.info.name.starts_with("a_vector_") && !resident_growth([] {}))
    GTEST_SKIP() << "memory beside the pool cannot be told here: see process_memory.h";
  const Level level = planted.at_quick ? Level::quick : Level::full;
  const auto results = check_variant(planted.info, {}, level, planted.caught_by);
  EXPECT_EQ(red(results), std::vector<std::string>{planted.caught_by});
  if (!planted.throws) expect_measured(results);
}
TEST(PlantedAtShapes, AreCaughtAtTheShapeThatIsPublished) {
  for (const PlantedAtShape& planted : planted_at_shapes()) {
    SCOPED_TRACE(planted.info.name);
    const auto results = check_variant_at(planted.info, {}, planted.shape, 1);
    EXPECT_FALSE(all_passed(results)) << lines(results);
    expect_measured(results);
    EXPECT_TRUE(all_passed(check_variant_at(faultless(true), {}, planted.shape, 1)));
  }
}

std::vector<PlantedVariant> planted_here() {
  std::vector<PlantedVariant> all = planted_variants();
  if (kIsDouble)
    std::erase_if(all, [](const PlantedVariant& one) {
      const std::vector<std::string> also = double_check_names(one.info);
      return std::find(also.begin(), also.end(), one.caught_by) == also.end() ||
             (!one.at_quick && one.caught_by != "gradients");
    });
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, PlantedVariants, testing::ValuesIn(planted_here()),
                         [](const auto& one) { return one.param.info.name; });

// What `attnbench new` makes passes the contract as it is made, for each family and for a task.

// By ATTN_CONFORMANCE=full; in full, the four take half a minute.
Level asked_level() {
  const char* const wanted = std::getenv("ATTN_CONFORMANCE");
  return wanted && std::string(wanted) == "full" ? Level::full : Level::quick;
}

void expect_passes(const VariantInfo& info) {
  const auto results = check_variant(info, {}, asked_level());
  bool is_referenced = false;
  for (const attn_check::Result& result : results) {
    EXPECT_NE(result.outcome, Outcome::failed)
        << info.name << " " << result.name << ": " << result.detail;
    if (result.name == "reference") is_referenced = result.outcome == Outcome::passed;
  }
  EXPECT_TRUE(is_referenced) << info.name;
}

TEST(MadeVariants, PatternPassesEveryCheck) { expect_passes(variants::made_pattern()); }
TEST(MadeVariants, ScoresPassEveryCheck) { expect_passes(variants::made_scores()); }
TEST(MadeVariants, KernelPassesEveryCheck) { expect_passes(variants::made_kernel()); }
TEST(MadeVariants, MixerPassesEveryCheck) { expect_passes(variants::made_mixer()); }

}  // namespace
}  // namespace attn::broken_test
