// Cells, rows, requests and replies through JSON and back; what does not fit is named by its place.
#include "harness/cell/codec.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <set>

#include "tests/harness/store/sample_rows.h"

namespace attn::codec_test {
namespace {

template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

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
    ids.insert(id_with([&](CellKey& key) { set_axis(key.axes, name, value); }));
  EXPECT_EQ(ids.size(), 1u + 8 + values.size());
}

TEST(Codec, AnAxisTakesItsOwnTypeAlone) {
  Axes axes;
  set_axis(axes, "input_scale", int64_t{2});
  EXPECT_EQ(axes.input_scale, 2.0);
  EXPECT_EQ(error_of([&] { set_axis(axes, "mode", std::string("sideways")); }),
            "axis mode=sideways is of another type");
  EXPECT_EQ(error_of([&] { set_axis(axes, "length", 2.5); }), "axis length=2.5 is of another type");
  EXPECT_EQ(error_of([&] { set_axis(axes, "lenght", int64_t{2}); }), "unknown axis 'lenght'");
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

TEST(Codec, AFaultNamesItsPlace) {
  Json line = sample_cell("speed");
  line["metrics"]["time_s"]["median"] = "fast";
  EXPECT_EQ(error_of([&] { row_of(line); }), "metrics.time_s.median: expected number, got string");
  line = sample_cell("accuracy");
  line["metrics"]["by_distance"][0].erase("to");
  EXPECT_EQ(error_of([&] { row_of(line); }), "metrics.by_distance[0].to: missing");
  line = sample_cell("memory");
  line["axes"]["mode"] = "sideways";
  EXPECT_EQ(error_of([&] { row_of(line); }), "axes.mode: 'sideways' is unknown");
  line["axes"] = 7;
  EXPECT_EQ(error_of([&] { row_of(line); }), "axes: expected object, got number");
  line["variant"]["params"]["rank"] = Json::array();
  EXPECT_EQ(error_of([&] { row_of(line); }),
            "variant.params.rank: expected number, boolean or string, got array");
}

TEST(Codec, ARequestReachesTheChildAsItWasAsked) {
  const Request asked{.what = Asked::pilot,
                      .of = PilotOf::shortcuts,
                      .key = full_key(),
                      .batch = 8,
                      .max_memory_bytes = 1 << 20};
  const Request read = request_of(to_json(asked));
  EXPECT_EQ(read.what, Asked::pilot);
  EXPECT_EQ(read.of, PilotOf::shortcuts);
  EXPECT_EQ(read.key, asked.key);
  EXPECT_EQ(read.batch, 8);
  EXPECT_EQ(read.max_memory_bytes, 1 << 20);
  EXPECT_EQ(error_of([] { request_of(Json::object()); }), "do: missing");
}

TEST(Codec, RepliesAreReadAsWhatWasAskedAlone) {
  const Reply visit = reply_of(reply_with(Visit{.times = {0.5}, .flops = 9}));
  ASSERT_TRUE(visit.is_ok());
  EXPECT_EQ(visit_of(visit).times, std::vector<double>{0.5});
  EXPECT_FALSE(found_in(visit, verdict_of)) << "no verdict is no pass";
  EXPECT_FALSE(found_in(visit, calibration_of));
  EXPECT_EQ(result_of(visit, Measure::memory).reason, "the result makes no row: metrics: missing");
  const Reply green = reply_of(reply_with(Verdict{}));
  EXPECT_EQ(found_in(green, verdict_of).value().red, "");
  const Reply red = reply_of(reply_with(Verdict{.red = "padding", .detail = "0.3"}));
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

TEST(Codec, FiguresThatAreNotFiniteAreNoResult) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const Json sound = {{"status", "ok"}, {"metrics", {{"test", 0.5}, {"bins", {1, 2.5}}}}};
  EXPECT_EQ(with_finite_figures(sound, Status::diverged), sound);
  Json broken = sound;
  broken["metrics"]["test"] = kNan;
  broken["samples"] = {{{"step", 1}, {"validation", nullptr}}};
  EXPECT_EQ(with_finite_figures(broken, Status::diverged),
            Json({{"status", "diverged"},
                  {"reason", "metrics.test is not a finite number"},
                  {"samples", broken["samples"]}}));
  broken["samples"][0]["step"] = kNan;
  EXPECT_FALSE(with_finite_figures(broken, Status::failed).contains("samples"));
  broken = sound;
  broken["metrics"]["bins"][1] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(with_finite_figures(broken, Status::failed)["reason"],
            "metrics.bins[1] is not a finite number");
}

}  // namespace
}  // namespace attn::codec_test
