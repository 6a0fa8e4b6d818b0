// The axis kv_heads in plans: cells that share no keys are the cells of before, conditions, labels,
// forecasts, and what is checked before a sweep.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/base/check.h"
#include "harness/plan/profiles.h"
#include "tests/harness/plan/planned.h"
#include "tests/harness/run/fake_cell.h"

namespace attn::kv_heads_test {
namespace {

SweepRequest of_full(std::map<std::string, std::string> axes) {
  return request_with(std::move(axes), {"full"});
}

// The id is that of the version before the axis, of sources that no version has.
TEST(KvHeadsAxis, CellsThatShareNothingKeepTheirIds) {
  const Plan without = plan(of_full({{"heads", "8"}, {"length", "128"}}));
  CellKey key = without.cells.at(0).key;
  EXPECT_EQ(to_json(key.axes).dump(),
            R"({"length":128,"batch":1,"heads":8,"head_dim":64,"mode":"forward",)"
            R"("scope":"attention","causal":false,"threads":1,"seed":0,"repetitions":9})");
  key.source = {};
  EXPECT_EQ(id_of(key), "c7a39aff3c3c7c36");
  EXPECT_EQ(to_json(without.config).dump().find("kv_heads"), std::string::npos);
  for (const char* same : {"0", "8", "0,8"}) {
    const auto found = ids(of_full({{"heads", "8"}, {"length", "128"}, {"kv_heads", same}}));
    EXPECT_EQ(found, std::set<std::string>{without.cells.at(0).id}) << same;
  }
}

TEST(KvHeadsAxis, AreCrossedWithHeads) {
  const Plan result = plan(
      of_full({{"measure", "memory"}, {"heads", "4,8"}, {"kv_heads", "0,2,8"}, {"length", "64"}}));
  std::set<std::pair<int64_t, int64_t>> found;
  std::set<std::string> labels;
  for (const Cell& cell : result.cells) {
    labels.insert(cell.label);
    found.emplace(cell.key.axes.heads.value(), cell.key.axes.kv_heads.value_or(0));
    EXPECT_EQ(cell.skip, cell.key.axes.heads == 4 && cell.key.axes.kv_heads == 8
                             ? "heads 4 are not a multiple of kv_heads 8"
                             : "");
  }
  EXPECT_EQ(found, (std::set<std::pair<int64_t, int64_t>>{{4, 0}, {4, 2}, {4, 8}, {8, 0}, {8, 2}}));
  EXPECT_EQ(labels.size(), result.cells.size()) << "each label tells its cell from the others";
  EXPECT_TRUE(labels.count("memory full length=64 heads=8 kv_heads=2"));
}

// Even where every cell that has the axis has the same value.
TEST(KvHeadsAxis, ALabelTellsASharedCellFromOneThatIsNot) {
  std::vector<std::string> labels;
  for (const Cell& cell : plan(of_full({{"kv_heads", "0,1"}, {"length", "64"}})).cells)
    labels.push_back(cell.label);
  EXPECT_EQ(labels,
            (std::vector<std::string>{"speed full length=64", "speed full length=64 kv_heads=1"}));
}

TEST(KvHeadsAxis, OfAMixerAreSkippedWithTheReason) {
  for (const Cell& cell : plan(request_with({{"kv_heads", "0,1"}}, {"mean"})).cells)
    EXPECT_EQ(cell.skip, cell.key.axes.kv_heads
                             ? "mean has no keys that query heads could share (kv_heads)"
                             : "");
}

TEST(KvHeadsAxis, OfOtherMeasuresOrOutOfRangeAreAnError) {
  const std::string training = error_of(of_full({{"measure", "accuracy"}, {"kv_heads", "2"}}));
  EXPECT_NE(training.find("--train kv_heads=2"), std::string::npos) << training;
  const std::string fidelity = error_of(of_full({{"measure", "fidelity"}, {"kv_heads", "2"}}));
  EXPECT_NE(fidelity.find("axis kv_heads=2 does not apply to measure fidelity"), std::string::npos)
      << fidelity;
  const std::string negative = error_of(of_full({{"kv_heads", "-1"}}));
  EXPECT_NE(negative.find("kv_heads=-1"), std::string::npos) << negative;
}

TEST(KvHeadsAxis, ConditionsCountAsManyAsHeadsWhereNoneAreShared) {
  const auto cells = [](const std::string& rule) {
    SweepRequest request;
    request.sweep_file = std::make_shared<const Profile>(
        read_profile("mine.toml",
                     "[[sweep]]\nvariants = ['full']\n"
                     "axes = { heads = 8, kv_heads = [0, 1, 4], length = [64, 128] }\n" +
                         rule));
    return plan(request).cells.size();
  };
  EXPECT_EQ(cells(""), 6u);
  EXPECT_EQ(cells("exclude = [{ kv_heads = '>4' }]"), 4u);
  EXPECT_EQ(cells("include = [{ kv_heads = 8, length = 64 }]"), 1u);
  EXPECT_EQ(cells("exclude = [{ kv_heads = '<=4' }]"), 2u);
}

TEST(KvHeadsAxis, ForecastsFollowTheState) {
  const auto bytes = [](const char* kv_heads) {
    return plan(of_full({{"measure", "memory"},
                         {"mode", "decode"},
                         {"length", "65536"},
                         {"heads", "8"},
                         {"kv_heads", kv_heads}}))
        .cells.at(0)
        .forecast_bytes;
  };
  const double state = 2.0 * 65536 * 8 * 64 * sizeof(float);
  EXPECT_NEAR(static_cast<double>(bytes("0") - bytes("1")), state * 7 / 8, 0.05 * state);
}

class KvHeadsGate : public FakeSweep {
 protected:
  // The shapes that the checks before a sweep are asked for.
  Json shapes(const char* mode, const char* kv_heads) {
    request_.axes = {{"measure", "memory"},
                     {"length", "64"},
                     {"heads", "8"},
                     {"mode", mode},
                     {"kv_heads", kv_heads}};
    request_.variants = {"full"};
    request_.force = true;
    sweep();
    return requests("check").back().at("shapes");
  }
};

TEST_F(KvHeadsGate, DecodingIsCheckedWithTheHeadsOfKeys) {
  const Json shared = shapes("decode", "0,2");
  ASSERT_EQ(shared.size(), 2u) << shared;
  EXPECT_FALSE(shared[0].contains("kv_heads"));
  EXPECT_EQ(shared[1]["kv_heads"], 2);
  EXPECT_EQ(shared[1]["heads"], 8);
  EXPECT_EQ(shapes("decode", "2").size(), 2u) << "the shape of all heads too";
  const Json forward = shapes("forward", "2");
  EXPECT_EQ(forward.size(), 1u) << "which repeats keys: " << forward;
}

}  // namespace
}  // namespace attn::kv_heads_test
