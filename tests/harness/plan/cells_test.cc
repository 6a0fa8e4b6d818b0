// plan(): every flag changes the cells, wrong flags are errors that name the nearest known thing,
// ids name what they should.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "core/base/check.h"
#include "core/base/memory.h"
#include "harness/cell/codec.h"
#include "harness/cell/source_hash.h"
#include "harness/plan/plan.h"
#include "harness/train/schedule.h"
#include "harness/train/train.h"
#include "tests/harness/plan/planned.h"
#include "variants/catalog.h"
#include "tests/said.h"

namespace attn::cells_test {
namespace {

TEST(Cells, WithoutFlagsEveryVariantIsTimed) {
  const Plan result = plan({});
  ASSERT_EQ(result.cells.size(), all_variants().size());
  for (const Cell& cell : result.cells) EXPECT_EQ(cell.key.measure, Measure::speed);
}

TEST(Cells, AreTheCrossProduct) {
  SweepRequest request =
      request_with({{"length", "64:256:*2"}, {"mode", "forward,train"}, {"causal", "false,true"}});
  request.variants = {"full[kernel=[tiled,materialized]]", "linear"};
  EXPECT_EQ(plan(request).cells.size(), 3u * 2 * 2 * 3);
}

// `width` is the cell that says nothing; with the others, the sizes of exact attention decide too.
TEST(Cells, EqualLayersAreCellsOfTheirOwn) {
  SweepRequest request = request_with({{"scope", "layer"}, {"equal", "width,parameters,flops"}});
  request.variants = {"linear"};
  const Plan cells = plan(request);
  request.axes.erase("equal");
  const Plan plain = plan(request);
  ASSERT_EQ(cells.cells.size(), 3u);
  EXPECT_EQ(cells.cells[0].id, plain.cells.at(0).id);
  EXPECT_EQ(cells.cells[0].key.source.exact, "");
  for (const size_t i : {size_t{1}, size_t{2}}) {
    EXPECT_NE(cells.cells[i].id, plain.cells[0].id);
    EXPECT_EQ(cells.cells[i].key.source.exact, source_hash("variants", "full"));
  }
}

// What was measured before a parameter was there keeps its id.
TEST(Cells, ALaterParameterIsInTheKeyWhereItIsNotAtItsDefault) {
  SweepRequest request;
  request.tasks = {"mqar[preset=small]", "mqar[preset=updates]"};
  request.variants = {"deltanet[beta_max=[1,2]]"};
  request.test_on = "length=128";
  const std::vector<Cell> cells = plan(request).cells;
  ASSERT_EQ(cells.size(), 4u);
  std::set<std::pair<bool, bool>> held;  // beta_max, updates
  for (const Cell& cell : cells) {
    const auto& task = cell.key.task.value().params.values();
    const auto& on = cell.key.test_on.at(0).values();
    held.emplace(cell.key.variant.params.values().contains("beta_max"), task.contains("updates"));
    EXPECT_EQ(on.contains("updates"), task.contains("updates"));
    EXPECT_FALSE(task.contains("deletes"));
    EXPECT_FALSE(on.contains("deletes"));
  }
  EXPECT_EQ(held.size(), 4u);
}

TEST(Cells, DefaultsAreFilledIn) {
  SweepRequest request;
  request.variants = {"truncated[window=7]"};
  const Cell cell = plan(request).cells.at(0);
  EXPECT_EQ(cell.key.variant.params.integer("window"), 7);
  for (const ParamSpec& spec : find_variant("truncated").params)
    EXPECT_TRUE(cell.key.variant.params.values().contains(spec.name));
  EXPECT_EQ(named_values(cell.key.axes).size(), 10u) << to_json(cell.key).dump();
  EXPECT_EQ(cell.id, hash_of(to_json(cell.key)));
}

// Each flag must change what is measured, and be hashed: two values give two cells where one gave
// one.
TEST(Cells, EveryAxisChangesTheCell) {
  const std::map<std::string, std::pair<std::string, std::string>> values = {
      {"length", {"64", "128"}},
      {"batch", {"1", "2"}},
      {"heads", {"1", "2"}},
      {"kv_heads", {"1", "2"}},
      {"head_dim", {"16", "32"}},
      {"mode", {"forward", "train"}},
      {"scope", {"attention", "model"}},
      {"causal", {"false", "true"}},
      {"threads", {"1", "2"}},
      {"seed", {"0", "1"}},
      {"repetitions", {"3", "4"}},
      {"input", {"random", "needle"}},
      {"input_scale", {"1", "2.5"}},
      {"layers", {"1", "4"}},
      {"measure", {"speed", "memory"}}};
  for (const auto& [axis, pair] : values) {
    SweepRequest request;
    request.variants = {"full"};
    if (axis.starts_with("input")) request.axes["measure"] = "fidelity";
    if (axis == "layers") request.axes["measure"] = "reach";
    const auto with = [&, &name = axis](const std::string& text) {
      SweepRequest one = request;
      one.axes[name] = text;
      return ids(one);
    };
    const auto a = with(pair.first), b = with(pair.second),
               both = with(pair.first + "," + pair.second);
    EXPECT_EQ(a.size(), 1u) << axis;
    EXPECT_NE(a, b) << axis;
    EXPECT_EQ(both.size(), 2u) << axis;
    EXPECT_TRUE(both.count(*a.begin()) && both.count(*b.begin())) << axis;
  }
}

TEST(Cells, ParametersTasksAndTrainingChangeTheCell) {
  SweepRequest request;
  request.variants = {"linformer[rank=[8,16]]"};
  request.tasks = {"mqar[pairs=[2,4]]", "listops"};
  request.training = "steps=[5,6]";
  const Plan result = plan(request);
  EXPECT_EQ(ids(request).size(), 2u * 3 * 2);
  for (const Cell& cell : result.cells) {
    EXPECT_EQ(cell.key.measure, Measure::accuracy) << "tasks alone ask for accuracy";
    EXPECT_TRUE(cell.key.axes.length);
    EXPECT_TRUE(cell.key.training.value().values().contains("width"));
  }
}

// Where it is not asked for, a row does not name it: ids of rows from before stay.
TEST(Cells, AMimicryFitIsASettingOfTheCell) {
  SweepRequest request;
  request.variants = {"hedgehog"};
  request.tasks = {"mqar"};
  const Plan plain = plan(request);
  ASSERT_EQ(plain.cells.size(), 1u);
  EXPECT_FALSE(plain.cells[0].key.training.value().values().contains("mimicry"));
  request.training = "mimicry=0";
  EXPECT_EQ(plan(request).cells[0].id, plain.cells[0].id);
  request.training = "mimicry=[0,50]";
  const Plan both = plan(request);
  ASSERT_EQ(both.cells.size(), 2u);
  EXPECT_EQ(both.cells[0].id, plain.cells[0].id);
  EXPECT_NE(both.cells[1].id, plain.cells[0].id);
  EXPECT_EQ(both.cells[1].key.training.value().integer("mimicry"), 50);
  EXPECT_GT(both.cells[1].forecast_s, both.cells[0].forecast_s);
  request.training.clear();
  request.tune = "mimicry=[0,50]";
  for (const Cell& cell : plan(request).cells)
    EXPECT_TRUE(cell.key.training.value().values().contains("mimicry")) << "tables name the choice";
}

TEST(Cells, AScheduleOfCosineIsNoSettingOfItsOwn) {
  SweepRequest request;
  request.variants = {"hedgehog"};
  request.tasks = {"mqar"};
  const Plan plain = plan(request);
  const auto settings = [](const Cell& cell) { return cell.key.training.value().values(); };
  for (const char* of_wsd : {"schedule", "decay", "min_delta"})
    EXPECT_FALSE(settings(plain.cells[0]).contains(of_wsd));
  request.training = "schedule=cosine";
  EXPECT_EQ(plan(request).cells[0].id, plain.cells[0].id);
  request.training = "schedule=wsd";
  const Cell wsd = plan(request).cells[0];
  EXPECT_NE(wsd.id, plain.cells[0].id);
  EXPECT_EQ(to_string(settings(wsd).at("steps")), "20000");
  EXPECT_EQ(to_string(settings(wsd).at("patience")), std::to_string(kWsdPatience));
  request.training = "schedule=wsd,steps=50,patience=0";
  EXPECT_EQ(to_string(settings(plan(request).cells[0]).at("steps")), "50");
  EXPECT_EQ(to_string(settings(plan(request).cells[0]).at("patience")), "0");
  request.training = "decay=0.1";
  EXPECT_TRUE(says(error_of(request), "schedule=wsd"));
  request.training.clear();
  request.tune = "schedule=[cosine,wsd]";
  for (const Cell& cell : plan(request).cells) EXPECT_TRUE(settings(cell).contains("schedule"));
}

TEST(Cells, Float32IsNoSettingOfItsOwn) {
  SweepRequest request;
  request.variants = {"hedgehog"};
  request.tasks = {"mqar"};
  const Plan plain = plan(request);
  EXPECT_FALSE(plain.cells[0].key.training.value().values().contains(kTrainDtype));
  request.training = "dtype=float32";
  EXPECT_EQ(plan(request).cells[0].id, plain.cells[0].id);
  request.training = "dtype=[float32,bfloat16]";
  const Plan both = plan(request);
  ASSERT_EQ(both.cells.size(), 2u);
  EXPECT_EQ(both.cells[0].id, plain.cells[0].id);
  EXPECT_NE(both.cells[1].id, plain.cells[0].id);
  EXPECT_TRUE(rounds_products(both.cells[1].key.training.value()));
  EXPECT_FALSE(rounds_products(both.cells[0].key.training.value()));
  request.training = "dtype=float16";
  EXPECT_TRUE(says(error_of(request), "float32|bfloat16"));
}

TEST(Cells, SourcesAreHashed) {
  SweepRequest request;
  request.tasks = {"mqar"};
  std::set<std::string> sources;
  for (const Cell& cell : plan(request).cells) {
    sources.insert(cell.key.source.variant);
    EXPECT_EQ(cell.key.source.task, source_hash("tasks", "mqar"));
    EXPECT_EQ(cell.key.source.exact, "");
  }
  EXPECT_EQ(sources.size(), all_variants().size());
  EXPECT_FALSE(sources.count(""));
  EXPECT_NE(source_hash("tasks", "mqar"), source_hash("tasks", "image"));
  request.tasks = {"reverse"};  // whose decoder may have `full` for the variant
  for (const Cell& cell : plan(request).cells)
    EXPECT_EQ(cell.key.source.exact, source_hash("variants", "full"));
}

TEST(Cells, WhatCannotRunIsSkippedWithAReason) {
  SweepRequest request = request_with({{"causal", "true"}});
  for (const Cell& cell : plan(request).cells) {
    if (cell.key.variant.name == "routing") continue;  // causal with assignment=nearest, no default
    EXPECT_EQ(cell.skip.empty(), find_variant(cell.key.variant.name).traits.causal) << cell.skip;
  }
  SweepRequest causal_task;
  causal_task.tasks = {"mqar"};
  causal_task.variants = {"linformer"};
  EXPECT_FALSE(plan(causal_task).cells.at(0).skip.empty());
}

TEST(Cells, DecodingIsCausalWithoutBeingAsked) {
  const Plan alone = plan(request_with({{"mode", "decode"}, {"measure", "speed,memory"}}));
  ASSERT_EQ(alone.cells.size(), 2 * all_variants().size());
  for (const Cell& cell : alone.cells) {
    EXPECT_EQ(cell.key.axes.causal, true);
    EXPECT_EQ(cell.skip.empty(), find_variant(cell.key.variant.name).traits.decode) << cell.skip;
  }
  EXPECT_EQ(to_json(alone.config)["sweeps"][0]["axes"]["causal"], Json::array({true}));
}

// `causal` is then that of the other modes, and decoding one cell whatever it is.
TEST(Cells, DecodingBesideOtherModes) {
  SweepRequest request = request_with({{"mode", "forward,decode"}, {"causal", "false"}});
  request.variants = {"full"};
  EXPECT_EQ(plan(request).cells.size(), 2u);
  request.axes["causal"] = "false,true";
  const Plan both = plan(request);
  EXPECT_EQ(both.cells.size(), 3u);
  for (const Cell& cell : both.cells)
    EXPECT_TRUE(cell.key.axes.mode == Mode::forward || cell.key.axes.causal == true);
}

TEST(Cells, DecodingAWholeLayerIsSkipped) {
  SweepRequest request = request_with({{"mode", "decode"}, {"scope", "attention,layer,model"}});
  request.variants = {"full"};
  const Plan result = plan(request);
  ASSERT_EQ(result.cells.size(), 3u);
  EXPECT_EQ(result.cells.at(0).skip, "");
  for (const size_t i : {size_t{1}, size_t{2}})
    EXPECT_TRUE(says(result.cells.at(i).skip, "scope attention"));
}

TEST(Cells, ForecastsOfDecodingGrowWithTheState) {
  SweepRequest request = request_with({{"mode", "decode"}, {"length", "1024,65536"}});
  request.variants = {"full", "linear"};
  const Plan result = plan(request);
  const auto bytes = [&](size_t i) {
    return static_cast<double>(result.cells.at(i).forecast_bytes);
  };
  const double each = 2.0 * 4 * 64 * 4;  // keys and values of four heads at a position
  const double prefill = 8.0 * (1 << 20) - each * 1023;  // made at a time: 8 MiB, or all
  EXPECT_EQ(bytes(2) - bytes(0), each * (65536 - 1024) + prefill);
  EXPECT_EQ(bytes(3) - bytes(1), prefill);
  EXPECT_GT(result.cells.at(2).forecast_s, result.cells.at(0).forecast_s);
}

TEST(Cells, ForecastsGrowWithTheWork) {
  SweepRequest request = request_with({{"length", "256,4096"}, {"measure", "memory"}});
  request.variants = {"full[kernel=materialized]"};
  const Plan result = plan(request);
  EXPECT_GT(result.cells.at(1).forecast_s, result.cells.at(0).forecast_s);
  EXPECT_GT(result.cells.at(1).forecast_bytes, 4 * 4096.0 * 4096 * 4);  // four heads of scores
  EXPECT_GT(result.cells.at(0).forecast_s, 0);
}

// Half the heads of keys take off what a feed-forward that is narrower by half a width takes off.
TEST(Cells, ForecastsOfTrainingShrinkWithTheHeadsOfKeys) {
  SweepRequest request = request_with({{"measure", "accuracy"}});
  request.variants = {"full"};
  request.tasks = {"mqar[preset=small]"};
  const auto seconds = [&](int kv_heads, int feed_forward) {
    request.training =
        fmt::format("width=256,heads=4,kv_heads={},feed_forward={}", kv_heads, feed_forward);
    return plan(request).cells.at(0).forecast_s;
  };
  const double all = seconds(4, 512);
  EXPECT_DOUBLE_EQ(seconds(0, 512), all);
  EXPECT_LT(seconds(2, 512), 0.95 * all);
  EXPECT_NEAR(seconds(2, 512), seconds(4, 384), 1e-9 * all);
  EXPECT_NEAR(seconds(1, 512), seconds(4, 320), 1e-9 * all);
}

TEST(Cells, PlanningNeverBuildsHugeWeights) {
  SweepRequest request = request_with({});
  request.variants = {"performer[features=1000000]", "linformer[rank=1000000]"};
  reset_memory_peak();
  EXPECT_EQ(plan(request).cells.size(), 2u);
  EXPECT_LT(memory_use().peak_total - memory_use().live_total, int64_t{80} << 20);
}

TEST(Cells, OneCellOnlyOnce) {
  SweepRequest request = request_with({{"length", "64,64"}});
  request.variants = {"linear", "linear", "truncated[window=64]", "truncated[window=[32,64]]"};
  EXPECT_EQ(plan(request).cells.size(), 3u);
}

TEST(Cells, ShardsPartition) {
  SweepRequest request = request_with({{"measure", "speed,memory"}, {"length", "64:512:*2"}});
  const std::set<std::string> whole = ids(request);
  std::set<std::string> joined;
  size_t total = 0;
  request.shards = 3;
  for (request.shard = 0; request.shard < 3; request.shard++) {
    const Plan part = plan(request);
    EXPECT_FALSE(part.cells.empty());
    total += part.cells.size();
    std::map<std::string, int> groups;  // variants to be compared in speed must be on one machine
    for (const Cell& cell : part.cells) {
      joined.insert(cell.id);
      if (cell.key.measure == Measure::speed) groups[group_of(cell.key)]++;
    }
    for (const auto& [group, count] : groups)
      EXPECT_EQ(count, static_cast<int>(all_variants().size()));
  }
  EXPECT_EQ(total, whole.size());
  EXPECT_EQ(joined, whole);
  request.shard = 3;
  EXPECT_TRUE(says(error_of(request), "3/3"));
}

TEST(Cells, ErrorsNameTheNearest) {
  const auto expect = [](const SweepRequest& request, std::initializer_list<const char*> parts) {
    const std::string error = error_of(request);
    for (const char* part : parts)
      EXPECT_TRUE(says(error, part)) << "'" << part << "' in: " << error;
    EXPECT_FALSE(says(error, "\n"));
  };
  SweepRequest request;
  request.variants = {"linfromer"};
  expect(request, {"linfromer", "'linformer'"});
  request.variants = {"linformer[ranks=3]"};
  expect(request, {"ranks", "'rank'"});
  request.variants = {"linformer[rank=many]"};
  expect(request, {"rank=many", "int"});
  request.variants = {"linformer[rank=0]"};
  expect(request, {"rank=0", "1.."});
  request = {};
  request.tasks = {"mqra"};
  expect(request, {"mqra", "'mqar'"});
  request = {};
  request.profile = "quik";
  expect(request, {"quik", "'quick'"});
  expect(request_with({{"lenght", "64"}}), {"lenght", "'length'"});
  expect(request_with({{"length", "0"}}), {"length=0"});
  expect(request_with({{"length", "many"}}), {"length=many"});
  expect(request_with({{"mode", "backward"}}), {"mode=backward", "forward|train|decode"});
  for (const char* causal : {"false", "false,true", "true,false"})
    expect(request_with({{"mode", "decode"}, {"causal", causal}}), {"causal=false", "decode"});
  expect(request_with({{"measure", "sped"}}), {"sped", "'speed'", "fidelity"});
  expect(request_with({{"causal", "yes"}}), {"causal=yes", "true|false"});
  SweepRequest training;
  training.tasks = {"mqar"};
  training.training = "step=5";
  expect(training, {"step", "'steps'"});
  training.training = "mimicry=5";
  training.variants = {"hedgehog", "full"};
  expect(training, {"full", "mimicry=5", "trait mimicry"});
  training.axes = {{"measure", "fidelity"}, {"input", "trained"}};
  training.variants = {"hedgehog"};
  expect(training, {"mimicry=5", "exact attention"});
}

TEST(Cells, AFlagThatNothingListensToIsAnError) {
  EXPECT_TRUE(
      says(error_of(request_with({{"measure", "accuracy"}, {"length", "64"}})), "mqar[length="));
  EXPECT_TRUE(
      says(error_of(request_with({{"measure", "speed"}, {"input_scale", "2"}})), "input_scale=2"));
  SweepRequest request = request_with({{"measure", "speed"}});
  request.tasks = {"mqar"};
  EXPECT_TRUE(says(error_of(request), "mqar"));
  request.tasks.clear();
  request.training = "steps=3";
  EXPECT_TRUE(says(error_of(request), "steps=3"));
}

}  // namespace
}  // namespace attn::cells_test
