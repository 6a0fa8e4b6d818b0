// Prompts to score learned weights behind, in plans: what test_with may say, which grids it makes,
// and what is refused before a training.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "harness/cell/codec.h"
#include "harness/plan/profiles.h"
#include "harness/train/cached_score.h"
#include "tests/harness/plan/planned.h"
#include "tests/said.h"

namespace attn::prompted_scores_plan_test {
namespace {

// snapkv and quest have no `when`: a grid leaves it out beside them, and asks for each once.
TEST(PromptedScores, OfAGridOfMethods) {
  EXPECT_EQ(texts_with(scored("evict=[snapkv,h2o,quest],budget=[4,16],when=prompt,prompt=8")),
            (std::vector<std::string>{"budget=4,evict=snapkv,kernel=tiled,prompt=8,when=always",
                                      "budget=16,evict=snapkv,kernel=tiled,prompt=8,when=always",
                                      "budget=4,evict=h2o,kernel=tiled,prompt=8,when=prompt",
                                      "budget=16,evict=h2o,kernel=tiled,prompt=8,when=prompt",
                                      "budget=4,evict=quest,kernel=tiled,prompt=8,when=always",
                                      "budget=16,evict=quest,kernel=tiled,prompt=8,when=always"}));
  EXPECT_EQ(
      texts_with(scored("evict=[snapkv,h2o],budget=4,when=[always,prompt],prompt=[4,8]")).size(),
      6U);
  EXPECT_EQ(texts_with(scored("kv_dtype=int8,prompt=8", "full+truncated")),
            std::vector<std::string>{"kv_dtype=int8,prompt=8"});
}

// As without prompts, what a text asks for twice is scored twice.
TEST(PromptedScores, LeaveOtherGridsAsTheyWere) {
  EXPECT_EQ(texts_with(scored("evict=[h2o,h2o],budget=4")).size(), 2U);
  EXPECT_TRUE(says(error_of(scored("evict=snapkv,budget=4,when=prompt,prompt=8")),
                   "when=prompt has no effect here"))
      << "no grid";
}

TEST(PromptedScores, OtherCellsKeepTheirIds) {
  const Cell plain = plan(scored("")).cells.at(0),
             other = plan(scored("evict=[recent,h2o],budget=8;kv_dtype=int8")).cells.at(0),
             prompted = plan(scored("evict=snapkv,budget=4,prompt=8")).cells.at(0);
  for (const Cell* cell : {&plain, &other})
    EXPECT_FALSE(says(to_json(cell->key).dump(), R"("prompt":)"));
  EXPECT_TRUE(says(to_json(prompted.key).dump(), R"("prompt":8)"));
  EXPECT_NE(prompted.id, plan(scored("evict=snapkv,budget=4,prompt=9")).cells.at(0).id);
  CellKey key = prompted.key;
  key.test_with.clear();
  EXPECT_EQ(id_of(key), plain.id);
}

// What `repro` asks for is what the row holds.
TEST(PromptedScores, ThatARowHoldsMakeItsCell) {
  const Cell cell =
      plan(scored("evict=[snapkv,h2o],budget=4,when=prompt,prompt=8;kv_dtype=int4,prompt=8"))
          .cells.at(0);
  std::string text;
  for (const Params& params : cell.key.test_with) text += (text.empty() ? "" : ";") + params.str();
  EXPECT_EQ(plan(scored(text)).cells.at(0).id, cell.id);
  Request request;
  request.key = cell.key;
  const CellKey again = request_of(to_json(request)).key.value();
  EXPECT_EQ(again, cell.key) << "as a child process gets it";
  EXPECT_EQ(scored_with(again.test_with.at(0).values()).prompt, 8);
}

TEST(PromptedScores, AreAskedForBySweepFiles) {
  SweepRequest request;
  request.sweep_file = std::make_shared<const Profile>(read_profile("mine.toml", R"(
[[sweep]]
measure = "accuracy"
variants = ["full"]
tasks = ["mqar[preset=small]"]
test_with = "evict=[snapkv,h2o],budget=4,when=prompt,prompt=8"
)"));
  EXPECT_EQ(texts_with(request),
            texts_with(scored("evict=[snapkv,h2o],budget=4,when=prompt,prompt=8")));
}

TEST(PromptedScores, ThatCannotBeAreOneLine) {
  const auto refused = [](const SweepRequest& request, const std::string& said) {
    const std::string fault = error_of(request);
    EXPECT_TRUE(says(fault, said)) << fault;
    EXPECT_EQ(fault.find('\n'), std::string::npos) << fault;
  };
  for (const char* none : {"0", "-1", "1.5", "many"})
    refused(scored(std::string("prompt=") + none),
            std::string("prompt=") + none + " is not valid; expected int in 1..");
  for (const char* without : {"evict=snapkv,budget=4", "evict=h2o,budget=4,when=prompt"})
    refused(scored(without), "prompt alone; --test-with 'prompt=N' scores behind one");
  refused(scored("evict=snapkv,budget=4,prompt=[8,64]"),
          "prompt=64 leaves no step of the 64 positions of mqar; expected 1 to 63");
  refused(scored("kv_dtype=int8,prompt=200"), "prompt=200 leaves no step of the 64 positions");
  refused(scored("prompt=8", "linear"), "and that of linear has none");
  refused(scored("prompt=8", "full", "listops"), "decoding, which is causal, and listops is not");
  refused(scored("prompt=8", "full", "translate"), "translate has output sequences");
  refused(scored("evict=snapkv,budget=4,prompt=8,kv_dtype=int8"), "forgets caches in float32");
  refused(scored("", "full[prompt=8]"), "prompt");  // no training has such a parameter
}

}  // namespace
}  // namespace attn::prompted_scores_plan_test
