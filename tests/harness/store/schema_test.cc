// Every status and measure is accepted, and every rule of results/schema.json catches a row broken
// by hand, at the right path.
#include "harness/store/schema.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <limits>

#include "core/base/check.h"
#include "tests/harness/store/sample_rows.h"
#include "tests/places.h"

namespace attn::schema_test {
namespace {

const char* const kMeasures[] = {"speed", "memory", "accuracy", "fidelity", "reach"};

TEST(Schema, AcceptsEveryMeasureInEveryStatus) {
  EXPECT_EQ(schema_fault(sample_run()), "");
  for (const char* measure : kMeasures) {
    for (const char* status : {"ok", "skipped", "failed", "diverged", "timeout", "oom"}) {
      EXPECT_EQ(schema_fault(sample_cell(measure, status)), "") << measure << " " << status;
    }
  }
}

TEST(Schema, KeepsTheCurveOfADivergedTraining) {
  Json cell = sample_cell("accuracy", "diverged");
  cell["samples"] = sample_cell("accuracy")["samples"];
  EXPECT_EQ(schema_fault(cell), "");
  cell["status"] = "failed";
  EXPECT_NE(schema_fault(cell), "");
}

TEST(Schema, AnErrorMayExceedOne) {
  Json cell = sample_cell("accuracy");
  Json& metrics = cell["metrics"];
  metrics["test"] = metrics["validation"] = metrics["chance"] = metrics["lift"] = 1.5;
  metrics["shortcuts"]["majority"] = metrics["by_distance"][0]["accuracy"] = 1.5;
  metrics["by_length"][0]["test"] = metrics["by_length"][0]["chance"] = 1.5;
  metrics["slices"]["hops"][0]["test"] = 1.5;
  EXPECT_NE(schema_fault(cell), "") << "of accuracy";
  for (const char* metric : {"bits_per_token", "mean_squared_error"}) {
    metrics["metric"] = metric;
    EXPECT_EQ(schema_fault(cell), "") << metric;
  }
  metrics["test"] = -0.1;
  EXPECT_EQ(schema_fault(cell), "metrics.test: -0.1 is below 0");
}

TEST(Schema, NothingIsKeptWhereNothingDecodes) {
  Json cell = sample_cell("accuracy");
  cell["metrics"]["state_bytes"] = cell["metrics"]["decoding"] = nullptr;
  EXPECT_EQ(schema_fault(cell), "");
}

TEST(Schema, GrowsByNewFields) {
  Json cell = sample_cell("speed");
  cell["note"] = "new";
  cell["metrics"]["time_s"]["p99"] = 0.6;
  cell["axes"]["layout"] = "f32";
  EXPECT_EQ(schema_fault(cell), "");
}

struct Breakage {
  const char* measure;
  const char* pointer;  // where
  const char* value;    // JSON text; "" removes the field
  const char* fault;    // how the message begins
};

void PrintTo(const Breakage& b, std::ostream* out) {
  *out << b.measure << " " << b.pointer << " = " << b.value;
}

class BrokenRow : public testing::TestWithParam<Breakage> {};

TEST_P(BrokenRow, IsCaughtAtItsPath) {
  const Breakage& b = GetParam();
  Json row = std::string(b.measure) == "run" ? sample_run() : sample_cell(b.measure);
  const Json::json_pointer place(b.pointer);
  if (*b.value) {
    row[place] = Json::parse(b.value);
  } else {
    row[place.parent_pointer()].erase(place.back());
  }
  const std::string fault = schema_fault(row);
  EXPECT_EQ(fault.substr(0, std::string(b.fault).size()), b.fault) << fault;
}

INSTANTIATE_TEST_SUITE_P(
    Schema, BrokenRow,
    testing::Values(
        Breakage{"run", "/schema", R"("attnbench/2")", R"(schema: expected "attnbench/1", got)"},
        Breakage{"run", "/kind", R"("row")", "kind: expected one of"},  //
        Breakage{"run", "/kind", "", "kind: missing"},
        Breakage{"run", "/argv/0", "1", "argv[0]: expected string"},
        Breakage{"run", "/protocol/name", "", "protocol.name: missing"},
        Breakage{"run", "/protocol/name", R"("a b")", "protocol.name: \"a b\" does not match"},
        Breakage{"run", "/protocol/hash", R"("0123")", "protocol.hash: \"0123\" does not match"},
        Breakage{"run", "/protocol/departs", R"("length")", "protocol.departs: expected array"},
        Breakage{"run", "/protocol/departs/0", R"("\u001b[31m")", "protocol.departs[0]: "},
        Breakage{"run", "/protocol", "1", "protocol: expected object"},
        Breakage{"run", "/environment/cores", "0", "environment.cores: 0 is below 1"},
        Breakage{"run", "/environment/dirty", R"("false")",
                 "environment.dirty: expected boolean or null"},
        Breakage{"run", "/environment/calibration/copy_bytes_per_s", "0",
                 "environment.calibration.copy_bytes_per_s: 0 is not"},
        Breakage{"run", "/environment/calibration/copy_bytes_per_s_one", "0",
                 "environment.calibration.copy_bytes_per_s_one: 0 is not"},
        Breakage{"run", "/environment/governor", "", "environment.governor: missing"},
        Breakage{"run", "/noise_floor", "[]", "noise_floor: 0 entries"},
        Breakage{"run", "/noise_floor", R"([{"mode":"forward"}])",
                 "noise_floor[0].threads: missing"},
        Breakage{"run", "/noise_floor",
                 R"([{"mode":"forward","threads":1,"length":64,"share":-1,"cells":3,)"
                 R"("measured_at":"2026-01-31T12:00:00Z","commit":null}])",
                 "noise_floor[0].share: -1 is below 0"},
        Breakage{"speed", "/cell", R"("0123456789ABCDEF")", "cell: "},
        Breakage{"speed", "/status", R"("done")", "status: expected one of"},
        Breakage{"speed", "/reason", R"("why")", "reason: expected null"},
        Breakage{"speed", "/metrics", "null", "metrics: expected object"},
        Breakage{"speed", "/metrics/flops", "", "metrics.flops: missing"},
        Breakage{"speed", "/metrics/time_s/median", R"("x")",
                 "metrics.time_s.median: expected number"},
        Breakage{"speed", "/metrics/time_s/median", "null",
                 "metrics.time_s.median: expected number"},
        Breakage{"speed", "/metrics/time_s/n", "1.5", "metrics.time_s.n: expected integer"},
        Breakage{"speed", "/metrics/peak_fraction", "1.01",
                 "metrics.peak_fraction: 1.01 is above 1"},
        Breakage{"speed", "/metrics/state_bytes", "0.5", "metrics.state_bytes: expected integer"},
        Breakage{"speed", "/samples", "[]", "samples: 0 entries"},
        Breakage{"speed", "/samples/1", "-1", "samples[1]: -1 is not above 0"},
        Breakage{"speed", "/visits", "[2, 0]", "visits[1]: 0 is below 1"},
        Breakage{"speed", "/visits", "[]", "visits: 0 entries"},
        Breakage{"speed", "/axes/mode", R"("backward")", "axes.mode: expected one of"},
        Breakage{"speed", "/axes/causal", "0", "axes.causal: expected boolean"},
        Breakage{"speed", "/axes/threads", "", "axes.threads: missing"},
        Breakage{"speed", "/variant/params/rank", "[]",
                 "variant.params.rank: expected number or string or boolean"},
        Breakage{"speed", "/variant/name", R"("Linformer")", "variant.name: "},
        Breakage{"speed", "/task", R"({"name": "mqar", "params": {}})", "task: expected null"},
        Breakage{"speed", "/started_at", R"("2026-11-20 12:00:00")", "started_at: "},
        Breakage{"speed", "/duration_s", "-1", "duration_s: -1 is below 0"},
        Breakage{"memory", "/metrics/workspace_bytes", "0.5",
                 "metrics.workspace_bytes: expected integer"},
        Breakage{"memory", "/samples", "[1]", "samples: expected null"},
        Breakage{"accuracy", "/task", "null", "task: expected object"},
        Breakage{"accuracy", "/metrics/shortcuts/majority", "null",
                 "metrics.shortcuts.majority: expected number"},
        Breakage{"accuracy", "/samples/0/step", "", "samples[0].step: missing"},
        Breakage{"accuracy", "/metrics/by_distance/0/to", "", "metrics.by_distance[0].to: missing"},
        Breakage{"accuracy", "/metrics/by_distance/0/accuracy", "1.5",
                 "metrics.by_distance[0].accuracy: 1.5 is above 1"},
        Breakage{"accuracy", "/metrics/slices/hops/1/test", "1.5",
                 "metrics.slices.hops[1].test: 1.5 is above 1"},
        Breakage{"accuracy", "/metrics/slices/hops/0/labels", "0",
                 "metrics.slices.hops[0].labels: 0 is below 1"},
        Breakage{"accuracy", "/metrics/slices/hops/0/examples", "",
                 "metrics.slices.hops[0].examples: missing"},
        Breakage{"accuracy", "/metrics/metric", R"("error")", "metrics.metric: expected one of"},
        Breakage{"accuracy", "/metrics/test", "1.5", "metrics.test: 1.5 is above 1"},
        Breakage{"accuracy", "/metrics/chance", "-1", "metrics.chance: -1 is below 0"},
        Breakage{"accuracy", "/metrics/shortcuts/majority", "2",
                 "metrics.shortcuts.majority: 2 is above 1"},
        Breakage{"accuracy", "/metrics/state_bytes", "0.5",
                 "metrics.state_bytes: expected integer or null"},
        Breakage{"accuracy", "/metrics/by_length/0/chance", "",
                 "metrics.by_length[0].chance: missing"},
        Breakage{"accuracy", "/metrics/by_length/0/factor", "0",
                 "metrics.by_length[0].factor: 0 is below 1"},
        Breakage{"accuracy", "/metrics/by_length/0/test", "null",
                 "metrics.by_length[0].test: expected number"},
        Breakage{"accuracy", "/metrics/by_length/0/test", "1.5",
                 "metrics.by_length[0].test: 1.5 is above 1"},
        Breakage{"accuracy", "/metrics/by_length/1/test", "0.5",
                 "metrics.by_length[1].test: expected null"},
        Breakage{"accuracy", "/metrics/by_length/1/reason", R"("")",
                 "metrics.by_length[1].reason: "},
        Breakage{"accuracy", "/metrics/by_params/0/test", "null",
                 "metrics.by_params[0].test: expected number"},
        Breakage{"accuracy", "/metrics/by_params/1/test", "0.5",
                 "metrics.by_params[1].test: expected null"},
        Breakage{"accuracy", "/metrics/by_params/0/params", "",
                 "metrics.by_params[0].params: missing"},
        Breakage{"accuracy", "/metrics/by_params/0/by_distance", "0.5",
                 "metrics.by_params[0].by_distance: expected array"},
        Breakage{"accuracy", "/metrics/by_task/0/test", "null",
                 "metrics.by_task[0].test: expected number"},
        Breakage{"accuracy", "/metrics/by_task/0/test", "1.5",
                 "metrics.by_task[0].test: 1.5 is above 1"},
        Breakage{"accuracy", "/metrics/by_task/0/length", "0",
                 "metrics.by_task[0].length: 0 is below 1"},
        Breakage{"accuracy", "/metrics/by_task/1/test", "0.5",
                 "metrics.by_task[1].test: expected null"},
        Breakage{"accuracy", "/metrics/by_task/1/params", "", "metrics.by_task[1].params: missing"},
        Breakage{"reach", "/axes/layers", "", "axes.layers: missing"},
        Breakage{"reach", "/axes/length", "", "axes.length: missing"},
        Breakage{"reach", "/task", R"({"name": "mqar", "params": {}})", "task: expected null"},
        Breakage{"reach", "/samples", "[1.0]", "samples: expected null"},
        Breakage{"reach", "/metrics/floor", "0", "metrics.floor: 0 is not above 0"},
        Breakage{"reach", "/metrics/connected", "", "metrics.connected: missing"},
        Breakage{"reach", "/metrics/perturbation/past", "-1",
                 "metrics.perturbation.past: -1 is below 0"},
        Breakage{"reach", "/metrics/by_distance/0/gradient", "-0.1",
                 "metrics.by_distance[0].gradient: -0.1 is below 0"},
        Breakage{"accuracy", "/metrics/token_accuracy", "1.01",
                 "metrics.token_accuracy: 1.01 is above 1"},
        Breakage{"accuracy", "/metrics/places/1", R"("head")",
                 "metrics.places[1]: expected one of"},
        Breakage{"accuracy", "/metrics/decoding/same", "true",
                 "metrics.decoding.same: expected number"},
        Breakage{"accuracy", "/metrics/decoding/speedup", "", "metrics.decoding.speedup: missing"},
        Breakage{"accuracy", "/metrics/data_wait_share", "-0.1",
                 "metrics.data_wait_share: -0.1 is below 0"},
        Breakage{"fidelity", "/axes/input", "", "axes.input: missing"},
        Breakage{"fidelity", "/metrics/cosine", "2", "metrics.cosine: 2 is above"}));

// std::regex takes a stack frame a character: a long text must not get there.
TEST(Schema, RefusesLongNamesAndTimes) {
  Json cell = sample_cell("speed");
  cell["variant"]["name"] = std::string(1'000'000, 'a');
  EXPECT_EQ(schema_fault(cell), "variant.name: 1000000 bytes, expected at most 200");
  cell = sample_cell("speed");
  cell["started_at"] = "2026-11-20T12:00:00." + std::string(1'000'000, '0') + "Z";
  EXPECT_EQ(schema_fault(cell), "started_at: 1000021 bytes, expected at most 40");
}

TEST(Schema, RefusesNumbersThatAreNotJson) {
  Json cell = sample_cell("speed");
  cell["samples"][1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(schema_fault(cell).substr(0, 11), "samples[1]:");
  cell = sample_cell("speed");
  cell["metrics"]["extra"] = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(schema_fault(cell).substr(0, 14), "metrics.extra:");
}

TEST(Schema, NotOkMeansNoNumbers) {
  Json cell = sample_cell("speed", "timeout");
  cell["metrics"] = sample_cell("speed")["metrics"];
  EXPECT_EQ(schema_fault(cell).substr(0, 8), "metrics:");
  cell = sample_cell("speed", "failed");
  cell["reason"] = nullptr;
  EXPECT_EQ(schema_fault(cell).substr(0, 7), "reason:");
}

TEST(Schema, IsTheFileInResults) {
  std::ifstream file(source_folder() / "results/schema.json");
  EXPECT_EQ(Json::parse(file), row_schema());
}

TEST(Schema, RefusesKeywordsItDoesNotKnow) {
  EXPECT_THROW(json_schema_fault(Json::parse(R"({"multipleOf": 2})"), 3), Error);
  EXPECT_THROW(json_schema_fault(Json::parse(R"({"properties": {"a": {"oneOf": []}}})"), 3), Error);
}

}  // namespace
}  // namespace attn::schema_test
