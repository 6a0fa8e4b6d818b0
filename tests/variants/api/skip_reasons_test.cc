// Why a shape cannot run, of every variant: who shows a reason puts the variant's name before it.
#include <gtest/gtest.h>

#include "variants/catalog.h"

namespace attn::skip_reasons_test {
namespace {

TEST(SkipReasons, DoNotNameTheirVariantAgain) {
  int reasons = 0;
  for (const VariantInfo& info : all_variants()) {
    const Params params(info.name, info.params);
    for (const bool causal : {false, true})
      for (const AttentionShape& shape :
           {AttentionShape{1, 2, 9, 4, 8, causal}, AttentionShape{1, 3, 4, 9, 5, causal},
            AttentionShape{1, 2, 300'000, 300'000, 8, causal}})
        if (const auto reason = info.why_not(shape, params)) {
          reasons++;
          EXPECT_EQ(reason->find(info.name + ":"), std::string::npos) << *reason;
          EXPECT_FALSE(reason->starts_with(info.name)) << *reason;
        }
  }
  EXPECT_GT(reasons, 100) << "of other causality and other lengths";
}

// What tells a user that causal attention would run is data, not a text.
TEST(SkipReasons, CausalAloneIsSaidByTheEntry) {
  int alone = 0;
  for (const VariantInfo& info : all_variants()) {
    const Params params(info.name, info.params);
    const AttentionShape any{1, 2, 16, 16, 8, false}, causal{1, 2, 16, 16, 8, true};
    EXPECT_EQ(info.lacks_causal(any), info.why_not(any, params) && !info.why_not(causal, params))
        << info.name;
    EXPECT_FALSE(info.lacks_causal(causal));
    alone += info.causal_alone;
  }
  EXPECT_EQ(alone, 3) << "moba, dsa, nsa";
}

TEST(SkipReasons, CosformerSaysWhichSpanSuffices) {
  const VariantInfo& info = find_variant("cosformer");
  const AttentionShape more_queries{1, 2, 9, 4, 8, false};
  const auto reason = info.why_not(more_queries, Params(info.name, info.params));
  ASSERT_TRUE(reason);
  EXPECT_NE(reason->find("span=9 suffices"), std::string::npos) << *reason;
  const auto with_span = [&](int64_t span) {
    return info.why_not(more_queries, Params(info.name, info.params, {{"span", span}}));
  };
  EXPECT_FALSE(with_span(9));
  EXPECT_EQ(with_span(8), "9 positions exceed span=8, the distance where weights end");
}

}  // namespace
}  // namespace attn::skip_reasons_test
