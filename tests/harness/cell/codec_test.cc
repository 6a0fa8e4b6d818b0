// Cells, rows, requests and replies through JSON and back; what does not fit is named by its place.
#include "harness/cell/codec.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/harness/store/sample_rows.h"
#include "tests/said.h"

namespace attn::codec_test {
namespace {

CellKey full_key() {
  CellKey key;
  key.measure = Measure::accuracy;
  key.variant = {"linformer", Params::unchecked({{"rank", int64_t{64}}, {"share_kv", true}})};
  key.task = Plugin{"mqar", Params::unchecked({{"pairs", int64_t{8}}})};
  key.axes = {.length = 64, .causal = true, .threads = 2, .seed = 7};
  key.training = Params::unchecked({{"learning_rate", 2e-3}, {"positions", std::string("none")}});
  key.source = {.variant = "v", .task = "t", .exact = "", .data = ""};
  return key;
}

TEST(Codec, AKeyIsWrittenAsRowsNameIt) {
  EXPECT_EQ(to_json(full_key()).dump(),
            R"({"protocol":1,"measure":"accuracy",)"
            R"("variant":{"name":"linformer","params":{"rank":64,"share_kv":true}},)"
            R"("task":{"name":"mqar","params":{"pairs":8}},)"
            R"("axes":{"length":64,"causal":true,"threads":2,"seed":7},)"
            R"("training":{"learning_rate":0.002,"positions":"none"},)"
            R"("source":{"variant":"v","task":"t"}})");
}

TEST(Codec, EveryPartOfAKeyIsInItsId) {
  const auto id_with = [](auto change) {
    CellKey key = full_key();
    change(key);
    return id_of(key);
  };
  std::set<std::string> ids = {id_of(full_key())};
  ids.insert(id_with([](CellKey& key) { key.protocol++; }));
  ids.insert(id_with([](CellKey& key) { key.measure = Measure::speed; }));
  ids.insert(id_with([](CellKey& key) { key.variant.name = "full"; }));
  ids.insert(id_with([](CellKey& key) { key.variant.params = {}; }));
  ids.insert(id_with([](CellKey& key) { key.task.reset(); }));
  ids.insert(id_with([](CellKey& key) { key.training.reset(); }));
  ids.insert(id_with([](CellKey& key) { key.source.data = "d"; }));
  ids.insert(id_with([](CellKey& key) { key.source.exact = "e"; }));
  const std::map<std::string, ParamValue> values = {{"length", int64_t{65}},
                                                    {"batch", int64_t{2}},
                                                    {"heads", int64_t{2}},
                                                    {"kv_heads", int64_t{2}},
                                                    {"head_dim", int64_t{2}},
                                                    {"mode", std::string("train")},
                                                    {"scope", std::string("model")},
                                                    {"causal", false},
                                                    {"threads", int64_t{1}},
                                                    {"seed", int64_t{0}},
                                                    {"input", std::string("needle")},
                                                    {"input_scale", 2.5},
                                                    {"repetitions", int64_t{3}}};
  for (const auto& [name, value] : values)
    ids.insert(id_with(
        [&, name = name, value = value](CellKey& key) { set_axis(key.axes, name, value); }));
  EXPECT_EQ(ids.size(), 1u + 8 + values.size());
}

TEST(Codec, AnAxisTakesItsOwnTypeAlone) {
  Axes axes;
  set_axis(axes, "input_scale", int64_t{2});
  EXPECT_EQ(axes.input_scale, 2.0);
  EXPECT_EQ(fault_of([&] { set_axis(axes, "mode", std::string("sideways")); }),
            "axis mode=sideways is of another type");
  EXPECT_EQ(fault_of([&] { set_axis(axes, "length", 2.5); }), "axis length=2.5 is of another type");
  EXPECT_EQ(fault_of([&] { set_axis(axes, "lenght", int64_t{2}); }), "unknown axis 'lenght'");
}

TEST(Codec, RowsOfEveryMeasureAndStatusKeepTheSchemaBothWays) {
  for (const char* measure : {"speed", "memory", "accuracy", "fidelity"})
    for (const char* status : {"ok", "skipped", "failed", "timeout", "oom"}) {
      const Json line = sample_cell(measure, status);
      const Row row = row_of(line);
      const Json again = to_json(row);
      EXPECT_EQ(schema_fault(again), "") << again;
      EXPECT_EQ(to_json(row_of(again)), again);
      for (const auto& [name, value] : line.items())
        if (name != "metrics" && name != "axes") {
          EXPECT_EQ(again.value(name, Json()), value) << name;
        }
      if (!row.is_ok()) continue;
      for (const auto& [name, value] : line["metrics"].items())
        EXPECT_EQ(again["metrics"].value(name, Json()), value) << measure << " " << name;
    }
}

TEST(Codec, ARowOfEveryFieldIsTheSameAfterwards) {
  Json line = sample_cell("speed");
  line["source"] = {{"variant", "0123"}};
  line["ledger"] = {{"parameters", nullptr}, {"flops", 1e9},     {"precision", "float32"},
                    {"threads", 1},          {"kernel", "avx2"}, {"loops", "sse2"},
                    {"cost", "measured"}};
  line["metrics"]["bytes"] = nullptr;
  line["metrics"]["roofline_s"] = nullptr;
  line["metrics"]["state_bytes"] = 64;
  line["tuned"] = {"learning_rate"};
  line["gate"] = "red";
  line["rounds"] = 1;
  line["visits"] = {2};
  line["order_seed"] = 99;
  const Json again = to_json(row_of(line));
  EXPECT_EQ(Json::diff(line, again), Json::array()) << again;
}

// As the file has it, every field of each measure.
TEST(Codec, FiguresAreWrittenInTheOrderOfTheFile) {
  const auto written = [](const char* measure, const Metrics& metrics) {
    Row row = row_of(sample_cell(measure));
    row.result.metrics = metrics;
    const Json line = to_json(row);
    EXPECT_EQ(schema_fault(line), "") << line;
    EXPECT_EQ(to_json(row_of(line)).dump(), line.dump());
    return line["metrics"].dump();
  };
  EXPECT_EQ(written("speed", SpeedMetrics{.time = {.median = 2,
                                                   .mean = 3,
                                                   .min = 1,
                                                   .mad = 0.5,
                                                   .ci_low = 1.5,
                                                   .ci_high = 2.5,
                                                   .n = 9},
                                          .tokens_per_s = 4,
                                          .flops = 5,
                                          .flops_per_s = 6,
                                          .peak_fraction = 0.5,
                                          .bytes = 7,
                                          .roofline_s = 0.25,
                                          .state_bytes = 8}),
            R"({"time_s":{"median":2.0,"mean":3.0,"min":1.0,"mad":0.5,"ci_low":1.5,"ci_high":2.5,)"
            R"("n":9},"tokens_per_s":4.0,"flops":5.0,"flops_per_s":6.0,"peak_fraction":0.5,)"
            R"("bytes":7.0,"roofline_s":0.25,"state_bytes":8})");
  EXPECT_EQ(written("memory", MemoryMetrics{.peak_bytes = 1,
                                            .weights_bytes = 2,
                                            .activations_bytes = 3,
                                            .workspace_bytes = 4,
                                            .extra_bytes = 5,
                                            .declared_extra_bytes = 6,
                                            .state_bytes = 7,
                                            .rss_peak_bytes = 8}),
            R"({"peak_bytes":1,"weights_bytes":2,"activations_bytes":3,"workspace_bytes":4,)"
            R"("extra_bytes":5,"declared_extra_bytes":6,"state_bytes":7,"rss_peak_bytes":8})");
  EXPECT_EQ(written("fidelity",
                    FidelityMetrics{
                        .relative_error = 0.5, .cosine = 0.25, .weights_kl = 0.125, .flops = 2}),
            R"({"relative_error":0.5,"cosine":0.25,"weights_kl":0.125,"flops":2.0})");
  EXPECT_EQ(
      written("fidelity", FidelityMetrics{.relative_error = 0.5,
                                          .cosine = 0.25,
                                          .weights_kl = 0.125,
                                          .keys_read = 16,
                                          .weights_rank = 4.5,
                                          .mass_kept = 0.75,
                                          .model_test = 0.5,
                                          .model_chance = 0.25,
                                          .layers = {{.relative_error = 0.5, .effective_rank = 3},
                                                     {.keys_read = 8, .weights_rank = 2}}}),
      R"({"relative_error":0.5,"cosine":0.25,"weights_kl":0.125,"keys_read":16.0,)"
      R"("weights_rank":4.5,"mass_kept":0.75,)"
      R"("model_test":0.5,"model_chance":0.25,"layers":[{"relative_error":0.5,)"
      R"("weights_kl":null,"mass_kept":null,"effective_rank":3.0},{"relative_error":0.0,)"
      R"("weights_kl":null,"mass_kept":null,"keys_read":8.0,"weights_rank":2.0,)"
      R"("effective_rank":null}]})");
  EXPECT_EQ(
      written(
          "reach",
          ReachMetrics{.floor = 0.5,
                       .positions = 2,
                       .gradient = {.past = 3, .future = 4},
                       .perturbation = {.past = 5, .future = 6},
                       .connected = {.past = 7, .future = 8},
                       .by_distance = {{.distance = -1, .gradient = 0.25, .perturbation = 0.125}}}),
      R"({"floor":0.5,"positions":2,"gradient":{"past":3,"future":4},"perturbation":{"past":5,)"
      R"("future":6},"connected":{"past":7,"future":8},"by_distance":[{"distance":-1,)"
      R"("gradient":0.25,"perturbation":0.125}]})");
  AccuracyMetrics trained;
  trained.metric = "exact_match";
  trained.test = 0.5;
  trained.test_stderr = 0.25;
  trained.by_distance = {
      {.from = 1, .to = 2, .labels = 3, .accuracy = 0.5, .standard_error = 0.25}};
  trained.slices = {
      {"hops",
       {{.from = 1, .to = 1, .labels = 4, .examples = 2, .test = 0.5, .standard_error = 0.25},
        {.from = 2, .to = 3.5, .labels = 1, .examples = 1, .test = 1}}}};
  trained.validation = 0.75;
  trained.chance = 0.125;
  trained.shortcuts = {{"majority", 0.5}};
  trained.steps = 10;
  trained.best_step = 5;
  trained.ended_by = "plateau";
  trained.examples = 20;
  trained.train_s = 1;
  trained.data_wait_share = 0.5;
  trained.examples_per_s = 20;
  trained.parameters = 7;
  trained.flops = 8;
  trained.final_train_loss = 0.5;
  trained.control = "conv";
  trained.state_bytes = 9;
  trained.by_length = {
      {.factor = 1, .length = 64, .test = 0.5, .standard_error = 0.25, .chance = 0},
      {.factor = 2, .length = 128, .reason = "learned positions"}};
  trained.by_params = {{.params = Params::unchecked({{"rounds", int64_t{2}}}),
                        .test = 0.5,
                        .standard_error = 0.25,
                        .by_distance = {{.from = 3, .to = 4, .labels = 2, .accuracy = 0.5}},
                        .state_bytes = 10},
                       {.params = Params::unchecked({{"rank", int64_t{3}}}), .reason = "weights"}};
  trained.by_task = {{.params = Params::unchecked({{"length", int64_t{8}}}), .length = 8}};
  trained.by_task[0].reason = "positions";
  trained.token_accuracy = 0.5;
  trained.places = {"encoder"};
  trained.decoding = {.sequences = 1,
                      .tokens = 2,
                      .tokens_per_s = 3,
                      .recompute_tokens_per_s = 4,
                      .speedup = 0.75,
                      .same = 1};
  EXPECT_EQ(
      written("accuracy", trained),
      R"({"metric":"exact_match","test":0.5,"test_stderr":0.25,"by_distance":[{"from":1,"to":2,)"
      R"("labels":3,"accuracy":0.5,"stderr":0.25}],"slices":{"hops":[{"from":1.0,"to":1.0,)"
      R"("labels":4,"examples":2,"test":0.5,"stderr":0.25},{"from":2.0,"to":3.5,"labels":1,)"
      R"("examples":1,"test":1.0,"stderr":0.0}]},"validation":0.75,"chance":0.125,)"
      R"("shortcuts":{"majority":0.5},"lift":null,"steps":10,"best_step":5,"ended_by":"plateau",)"
      R"("examples":20,"train_s":1.0,"data_wait_share":0.5,"examples_per_s":20.0,"parameters":7,)"
      R"("flops":8.0,"final_train_loss":0.5,"control":"conv","state_bytes":9,"by_length":[)"
      R"({"factor":1,"length":64,"test":0.5,"stderr":0.25,"chance":0.0,"reason":null},)"
      R"({"factor":2,"length":128,"test":null,"stderr":null,"chance":null,)"
      R"("reason":"learned positions"}],"by_params":[{"params":{"rounds":2},"test":0.5,)"
      R"("stderr":0.25,"by_distance":[{"from":3,"to":4,"labels":2,"accuracy":0.5,"stderr":0.0}],)"
      R"("state_bytes":10,"reason":null},{"params":{"rank":3},"test":null,"stderr":null,)"
      R"("reason":"weights"}],"by_task":[{"params":{"length":8},"length":8,"test":null,)"
      R"("stderr":null,"chance":null,"reason":"positions"}],)"
      R"("token_accuracy":0.5,"places":["encoder"],"decoding":)"
      R"({"sequences":1,"tokens":2,"tokens_per_s":3.0,"recompute_tokens_per_s":4.0,)"
      R"("speedup":0.75,"same":1.0}})");
}

TEST(Codec, ARunLineIsTheSameAfterwards) {
  RunLine line{.run = "r1",
               .argv = {"run"},
               .config = {.profile = "quick",
                          .profile_version = 3,
                          .sweeps = {{.measure = Measure::accuracy,
                                      .variants = {"full"},
                                      .tasks = {"mqar"},
                                      .axes = {{"seed", {int64_t{0}, int64_t{1}}}},
                                      .training = {Params::unchecked({{"steps", int64_t{9}}})},
                                      .tuned = {"steps"}}},
                          .jobs = 2,
                          .timeout_s = 60,
                          .max_memory_bytes = 8,
                          .shard = "0/1"},
               .environment = sample_run()["environment"],
               .calibration = Calibration{.fma_flops_per_s_one = 1,
                                          .fma_flops_per_s_all = 2,
                                          .copy_bytes_per_s_one = 3,
                                          .copy_bytes_per_s = 4,
                                          .threads = 5},
               .calibration_fault = "",
               .started_at = "2026-11-20T12:00:00Z",
               .variants = {{.name = "full",
                             .order = 0,
                             .family = "exact",
                             .params = Params::unchecked({{"kernel", std::string("tiled")}})},
                            {.name = "linear", .order = 1, .family = "kernel"}},
               .order_seed = 77};
  line.environment.erase("calibration");
  const Json json = to_json(line);
  EXPECT_EQ(schema_fault(json), "") << json;
  const RunLine read = run_line_of(json);
  EXPECT_EQ(to_json(read).dump(), json.dump());
  EXPECT_TRUE(read.config.asks_the_same(line.config));
  EXPECT_EQ(read.calibration.value().copy_bytes_per_s_one, 3);
  EXPECT_EQ(read.order_seed, 77u);
  EXPECT_EQ(json["variants"][0]["params"]["kernel"], "tiled");
  EXPECT_FALSE(read.variants.at(1).params) << "rows of earlier versions have none";
  EXPECT_FALSE(json.contains("noise_floor")) << "none was measured";
  EXPECT_EQ(json["environment"]["calibration"]["threads"], 5);
  line.calibration.reset();
  line.calibration_fault = "out of memory";
  EXPECT_EQ(run_line_of(to_json(line)).calibration_fault, "out of memory");
  EXPECT_TRUE(to_json(line)["environment"]["calibration"].is_null());
  line.noise_floor = {{.mode = Mode::train,
                       .threads = 2,
                       .length = 64,
                       .share = 0.013,
                       .cells = 5,
                       .measured_at = "2026-11-20T12:00:00Z",
                       .commit = ""}};
  EXPECT_EQ(schema_fault(to_json(line)), "");
  EXPECT_EQ(to_json(run_line_of(to_json(line))).dump(), to_json(line).dump());
  EXPECT_EQ(to_json(line)["noise_floor"].dump(),
            R"([{"mode":"train","threads":2,"length":64,"share":0.013,"cells":5,)"
            R"("measured_at":"2026-11-20T12:00:00Z","commit":null}])");
  Json other = json;
  other["config"]["sweeps"][0]["axes"]["seed"] = {0};
  EXPECT_FALSE(run_line_of(other).config.asks_the_same(line.config));
  other = json;
  other["config"]["jobs"] = 1;
  EXPECT_TRUE(run_line_of(other).config.asks_the_same(line.config)) << "a limit";
}

TEST(Codec, NumbersAreReadAsOtherWritersHaveThem) {
  Json line = sample_cell("memory");
  line["metrics"]["peak_bytes"] = 4096.0;
  EXPECT_EQ(row_of(line).memory().peak_bytes, 4096);
  line["metrics"]["peak_bytes"] = 4096.5;
  EXPECT_EQ(fault_of([&] { row_of(line); }), "metrics.peak_bytes: expected integer, got number");
  line = sample_cell("speed");
  line["order_seed"] = -1;
  EXPECT_EQ(fault_of([&] { row_of(line); }), "order_seed: -1 is out of range");
}

TEST(Codec, AFaultNamesItsPlace) {
  Json line = sample_cell("speed");
  line["metrics"]["time_s"]["median"] = "fast";
  EXPECT_EQ(fault_of([&] { row_of(line); }), "metrics.time_s.median: expected number, got string");
  line = sample_cell("accuracy");
  line["metrics"]["by_distance"][0].erase("to");
  EXPECT_EQ(fault_of([&] { row_of(line); }), "metrics.by_distance[0].to: missing");
  line = sample_cell("accuracy");
  line["metrics"]["slices"]["hops"][1].erase("test");
  EXPECT_EQ(fault_of([&] { row_of(line); }), "metrics.slices.hops[1].test: missing");
  line["metrics"].erase("slices");
  EXPECT_TRUE(row_of(line).accuracy().slices.empty()) << "rows of earlier versions have none";
  line = sample_cell("memory");
  line["axes"]["mode"] = "sideways";
  EXPECT_EQ(fault_of([&] { row_of(line); }), "axes.mode: \"sideways\" is unknown");
  line["axes"] = 7;
  EXPECT_EQ(fault_of([&] { row_of(line); }), "axes: expected object, got number");
  line["variant"]["params"]["rank"] = Json::array();
  EXPECT_EQ(fault_of([&] { row_of(line); }),
            "variant.params.rank: expected number, boolean or string, got array");
}

TEST(Codec, ARequestReachesTheChildAsItWasAsked) {
  const Request asked{.what = Asked::pilot,
                      .of = PilotOf::shortcuts,
                      .key = full_key(),
                      .batch = 8,
                      .steps = 5,
                      .max_memory_bytes = 1 << 20};
  const Request read = request_of(to_json(asked));
  EXPECT_EQ(read.what, Asked::pilot);
  EXPECT_EQ(read.of, PilotOf::shortcuts);
  EXPECT_EQ(read.key, asked.key);
  EXPECT_EQ(read.batch, 8);
  EXPECT_EQ(read.steps, 5);
  EXPECT_EQ(read.max_memory_bytes, 1 << 20);
  Request check{.what = Asked::check, .variant = Plugin{"full", {}}, .shapes = {{.heads = 8}}};
  EXPECT_FALSE(says(to_json(check).dump(), "kv_heads")) << "as before it was there";
  check.shapes[0].kv_heads = 2;
  EXPECT_EQ(request_of(to_json(check)).shapes, check.shapes);
  EXPECT_EQ(fault_of([] { request_of(Json::object()); }), "do: missing");
  EXPECT_EQ(fault_of([] { request_of({{"do", "measure"}}); }), "key: missing");
  EXPECT_EQ(fault_of([] { request_of({{"do", "check"}}); }), "variant or task: missing");
}

TEST(Codec, RepliesAreReadAsWhatWasAskedAlone) {
  const Reply visit = reply_of(reply_with(Visit{.times = {0.5}, .flops = 9}));
  ASSERT_TRUE(visit.is_ok());
  EXPECT_EQ(visit_of(visit).times, std::vector<double>{0.5});
  EXPECT_FALSE(found_in(visit, verdict_of)) << "no verdict is no pass";
  EXPECT_FALSE(found_in(visit, calibration_of));
  EXPECT_EQ(result_of(visit, Measure::memory).reason, "the result makes no row: metrics: missing");
  const Reply green = reply_of(reply_with(CheckReply{}));
  EXPECT_FALSE(found_in(green, verdict_of).value().red);
  const Reply nameless = reply_of(reply_with(CheckReply{.red = "", .detail = "0.3"}));
  EXPECT_EQ(found_in(nameless, verdict_of).value().red, "") << "no name is no pass either";
  const Reply red = reply_of(reply_with(CheckReply{.red = "padding", .detail = "0.3"}));
  EXPECT_EQ(found_in(red, verdict_of).value().red, "padding");
  EXPECT_FALSE(found_in(reply_of(failed_reply(Status::oom, "2 GiB")), verdict_of));
}

TEST(Codec, ADivergedTrainingKeepsItsCurve) {
  CellResult result{.status = Status::diverged, .reason = "the loss was not finite at step 3"};
  result.curve = {{.step = 2, .train_loss = 0.5, .validation = std::nullopt, .seconds = 1}};
  const CellResult read =
      result_of(reply_of(reply_with(Measure::accuracy, result)), Measure::accuracy);
  EXPECT_EQ(read.status, Status::diverged);
  EXPECT_EQ(read.reason, result.reason);
  ASSERT_EQ(read.curve.value().size(), 1u);
  EXPECT_EQ(read.curve->at(0).step, 2);
}

}  // namespace
}  // namespace attn::codec_test
