// Types of caches to score learned weights from, in plans: what test_with may say beside parameters
// of variants, and what is refused.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "harness/cell/codec.h"
#include "harness/plan/profiles.h"
#include "harness/train/cached_score.h"
#include "tests/harness/plan/planned.h"
#include "tests/said.h"

namespace attn::cached_scores_plan_test {
namespace {

TEST(CachedScores, StandBesideTheParametersOfTheVariant) {
  const std::vector<std::string> all = {"kernel=tiled,kv_dtype=int8",
                                        "kernel=tiled,kv_dtype=int8/int4",
                                        "kernel=tiled,kv_dtype=bfloat16"};
  const std::vector<std::string> found =
      texts_with(scored("kv_dtype=[int8,int8/int4];kv_dtype=bfloat16"));
  ASSERT_EQ(found.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_TRUE(says(found[i], all[i].substr(all[i].find("kv_dtype")))) << found[i];
  EXPECT_EQ(texts_with(scored("kv_dtype=int8", "full+truncated")),
            std::vector<std::string>{"kv_dtype=int8"});
  EXPECT_EQ(texts_with(scored("window=4,kv_dtype=int4", "truncated")),
            std::vector<std::string>{"kv_dtype=int4,window=4"});
}

// Of what is asked for without a cache, nothing names one.
TEST(CachedScores, OtherCellsKeepTheirIds) {
  const Cell plain = plan(scored("")).cells.at(0),
             other = plan(scored("evict=recent,budget=8")).cells.at(0),
             cached = plan(scored("kv_dtype=int8")).cells.at(0);
  EXPECT_FALSE(says(to_json(plain.key).dump(), kCacheParam));
  EXPECT_FALSE(says(to_json(other.key).dump(), kCacheParam));
  EXPECT_TRUE(says(to_json(cached.key).dump(), R"("kv_dtype":"int8")"));
  CellKey key = cached.key;
  key.test_with.clear();
  EXPECT_EQ(id_of(key), plain.id);
}

// What `repro` asks for is what the row holds.
TEST(CachedScores, ThatARowHoldsMakeItsCell) {
  const Cell cell = plan(scored("kv_dtype=[int8/int4,int4];evict=h2o,budget=8")).cells.at(0);
  std::string text;
  for (const Params& params : cell.key.test_with) text += (text.empty() ? "" : ";") + params.str();
  EXPECT_EQ(plan(scored(text)).cells.at(0).id, cell.id);
  Request request;
  request.key = cell.key;
  EXPECT_EQ(request_of(to_json(request)).key, cell.key) << "as a child process gets it";
}

TEST(CachedScores, AreAskedForBySweepFiles) {
  SweepRequest request;
  request.sweep_file = std::make_shared<const Profile>(read_profile("mine.toml", R"(
[[sweep]]
measure = "accuracy"
variants = ["full"]
tasks = ["mqar[preset=small]"]
test_with = "kv_dtype=[int8,int8/int4,int4]"
)"));
  EXPECT_EQ(texts_with(request), texts_with(scored("kv_dtype=[int8,int8/int4,int4]")));
  EXPECT_EQ(texts_with(request).size(), 3U);
}

TEST(CachedScores, ThatCannotBeAreOneLine) {
  const auto refused = [](const SweepRequest& request, const std::string& said) {
    const std::string fault = error_of(request);
    EXPECT_TRUE(says(fault, said)) << fault;
    EXPECT_EQ(fault.find('\n'), std::string::npos) << fault;
  };
  refused(scored("kv_dtype=int5"), "full: kv_dtype=int5 is not valid; expected string in float32|");
  refused(scored("kv_dtype=int8;;kv_dtype=int4"), "empty part");
  refused(scored("kv_dtype=int8", "linear"), "the decoder of linear has no cache of int8");
  refused(scored("kv_dtype=int8", "mamba2"), "the decoder of mamba2 has no cache of int8");
  refused(scored("kv_dtype=int8", "full+linear"), "full+linear has no cache of int8");
  refused(scored("evict=h2o,budget=8,kv_dtype=int4"),
          "a decoder that forgets caches in float32, not in int4");
  refused(scored("kv_dtype=int4", "full[evict=h2o,budget=8]"), "forgets caches in float32");
  refused(scored("kv_dtype=int8", "full", "listops"),
          "a cache of int8 is of decoding, which is causal, and listops is not");
  refused(scored("kv_dtype=int8", "full", "translate"), "translate has output sequences");
  refused(scored("kv_dtype=int8", "full", "mqar[preset=small]", "positions=alibi"),
          "no positions alibi");
  // A training of its own has no such parameter.
  refused(scored("", "full[kv_dtype=int8]"), "kv_dtype");
}

}  // namespace
}  // namespace attn::cached_scores_plan_test
