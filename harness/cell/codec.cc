// One list of fields for each struct, read and written by store/fields.h; see codec.h.
#include "harness/cell/codec.h"

#include <utility>

#include "core/base/check.h"
#include "harness/cell/row_fields.h"

namespace attn {

template <class Archive>
void fields(Archive& archive, SweepConfig& sweep) {
  archive("measure", sweep.measure);
  archive("variants", sweep.variants);
  archive("tasks", sweep.tasks);
  archive("axes", sweep.axes);
  archive("training", sweep.training);
  archive("tuned", sweep.tuned);
  archive.maybe("tune_by", sweep.tune_by);
  archive.maybe("test_with", sweep.test_with);
  archive.maybe("test_on", sweep.test_on);
}

template <class Archive>
void fields(Archive& archive, RunConfig& config) {
  archive.text_or_null("profile", config.profile);
  archive("profile_version", config.profile_version);
  archive("protocol", config.protocol);
  archive("sweeps", config.sweeps);
  archive("jobs", config.jobs);
  archive("timeout_s", config.timeout_s);
  archive("max_memory_bytes", config.max_memory_bytes);
  archive("shard", config.shard);
  archive.maybe("precision", config.precision);
  archive.maybe("max_time_s", config.max_time_s);
  archive.maybe("pin", config.pin);
}

template <class Archive>
void fields(Archive& archive, ListedVariant& variant) {
  archive("name", variant.name);
  archive("order", variant.order);
  archive("family", variant.family);
  archive.maybe("params", variant.params);
}

// The calibration stands among the facts of the environment.
constexpr const char* kCalibration = "calibration";
constexpr const char* kCalibrationFault = "calibration_fault";

inline Json environment_of(const RunLine& line) {
  Json environment = line.environment;
  environment[kCalibration] = json_of(line.calibration);
  if (!line.calibration_fault.empty()) environment[kCalibrationFault] = line.calibration_fault;
  return environment;
}

inline void take_environment(Json environment, RunLine& line) {
  JsonReader reader(environment, "environment");
  reader(kCalibration, line.calibration);
  reader.maybe(kCalibrationFault, line.calibration_fault);
  environment.erase(kCalibration);
  environment.erase(kCalibrationFault);
  line.environment = std::move(environment);
}

template <class Archive>
void fields(Archive& archive, FloorAt& floor) {
  archive("mode", floor.mode);
  archive("threads", floor.threads);
  archive("length", floor.length);
  archive("share", floor.share);
  archive("cells", floor.cells);
  archive("measured_at", floor.measured_at);
  archive.text_or_null("commit", floor.commit);
}

template <class Archive>
void fields(Archive& archive, RunLine& line) {
  archive.constant("schema", kSchema);
  archive.constant("kind", "run");
  archive("run", line.run);
  archive("argv", line.argv);
  archive("config", line.config);
  Json environment = Archive::reads ? Json() : environment_of(line);
  archive("environment", environment);
  if constexpr (Archive::reads) take_environment(std::move(environment), line);
  archive.maybe("started_at", line.started_at);
  archive.added("variants", line.variants);
  archive.added("order_seed", line.order_seed);
  archive.maybe("noise_floor", line.noise_floor);
}

template <class Archive>
void fields(Archive& archive, PublishedShape& shape) {
  archive("heads", shape.heads);
  archive("head_dim", shape.head_dim);
  archive("threads", shape.threads);
  archive("causal", shape.causal);
  archive.maybe("kv_heads", shape.kv_heads);
  archive.maybe("dtype", shape.dtype);
  archive.maybe("kv_dtype", shape.kv_dtype);
}

template <class Archive>
void fields(Archive& archive, Request& request) {
  archive("do", request.what);
  archive.maybe("of", request.of);
  archive.maybe("key", request.key);
  archive.maybe("variant", request.variant);
  archive.maybe("task", request.task);
  archive.maybe("shapes", request.shapes);
  archive.maybe("repetitions", request.repetitions);
  archive.maybe("cpus", request.cpus);
  archive.maybe("breakdown", request.breakdown);
  archive.maybe("draw", request.draw);
  archive.maybe("batch", request.batch);
  archive.maybe("steps", request.steps);
  archive.maybe("threads", request.threads);
  archive.maybe("max_memory_bytes", request.max_memory_bytes);
  archive.maybe("folder", request.folder);
}

template <class Archive>
void fields(Archive& archive, Witness& witness) {
  archive("flops_per_s", witness.flops_per_s);
  archive("copy_bytes_per_s", witness.copy_bytes_per_s);
}

template <class Archive>
void fields(Archive& archive, MarkedPasses& marked) {
  archive("marked_s", marked.marked_s);
  archive("plain_s", marked.plain_s);
  archive("part_s", marked.part_s);
  archive("passes", marked.passes);
  archive("marks", marked.marks);
}

template <class Archive>
void fields(Archive& archive, Visit& visit) {
  archive("samples", visit.times);
  archive.maybe("later_s", visit.later_s);
  archive.maybe("calls", visit.calls);
  archive.maybe("padded_s", visit.padded_s);
  archive("flops", visit.flops);
  archive.maybe("cost", visit.cost);
  archive.maybe("dtype", visit.dtype);
  archive.maybe("bytes", visit.bytes);
  archive.maybe("state_bytes", visit.state_bytes);
  archive.maybe("witness", visit.witness);
  archive.maybe("disturbance", visit.disturbance);
  archive.maybe("marked", visit.marked);
  archive.maybe("sizes", visit.sizes);
  archive.maybe("verified", visit.verified);
}

template <class Archive>
void fields(Archive& archive, CheckReply& verdict) {
  archive.require("red");  // a reply without it is no pass
  archive("red", verdict.red);
  archive("detail", verdict.detail);
}

template <class Archive>
void fields(Archive& archive, PilotFigures& pilot) {
  archive.maybe("step_s", pilot.step_s);
  archive.maybe("evaluation_s", pilot.evaluation_s);
  archive.maybe("shortcuts_s", pilot.shortcuts_s);
}

namespace {

template <class T>
Json ok_reply(const T& found) {
  Json reply = {{"status", "ok"}, {"reason", nullptr}};
  reply.update(json_of(found));
  return reply;
}

}  // namespace

Json to_json(const Plugin& plugin) { return json_of(plugin); }
Json to_json(const Axes& axes) { return json_of(axes); }
Json to_json(const ParamValue& value) { return json_of(value); }
Json to_json(const Params& params) { return json_of(params); }
Json to_json(const CellKey& key) { return json_of(key); }
Json to_json(const RunConfig& config) { return json_of(config); }
Json to_json(const RunLine& line) { return json_of(line); }
Json to_json(const Row& row) { return json_of(row); }
Json to_json(const Request& request) { return json_of(request); }
Json to_json(const PilotFigures& figures) { return json_of(figures); }
Json to_json(const FloorAt& floor) { return json_of(floor); }

RunLine run_line_of(const Json& json) { return read_json<RunLine>(json); }
Row row_of(const Json& json) { return read_json<Row>(json); }
Request request_of(const Json& json) {
  auto request = read_json<Request>(json);
  const bool names_cell = request.what == Asked::measure || request.what == Asked::pilot;
  ATTN_CHECK(!names_cell || request.key, "key: missing");
  ATTN_CHECK(request.what != Asked::check || request.variant || request.task,
             "variant or task: missing");
  ATTN_CHECK(request.what != Asked::pilot || request.of, "of: missing");
  return request;
}
PilotFigures read_pilot_figures(const Json& json) { return read_json<PilotFigures>(json); }
FloorAt floor_at_of(const Json& json) { return read_json<FloorAt>(json); }

std::string id_of(const CellKey& key) { return hash_of(to_json(key)); }

std::string group_of(const CellKey& key) {
  CellKey group = key;
  group.variant = {};
  group.source = {};
  return to_json(group).dump();
}

Json reply_with(const Visit& visit) { return ok_reply(visit); }
Json reply_with(const CheckReply& verdict) { return ok_reply(verdict); }
Json reply_with(const Calibration& calibration) {
  return ok_reply(std::map<std::string, Calibration>{{kCalibration, calibration}});
}
Json reply_with(const PilotFigures& figures) { return ok_reply(figures); }

Json reply_with(Measure measure, const CellResult& result) {
  JsonWriter archive;
  archive("status", result.status);
  archive.text_or_null("reason", result.reason);
  CellResult found = result;
  figures(archive, measure, found);
  archive.maybe("cost", result.cost);
  archive.maybe("dtype", result.dtype);
  archive.maybe("sizes", result.sizes);
  archive.maybe("verified", result.verified);
  return std::move(archive.object);
}

Json failed_reply(Status status, const std::string& reason) {
  return {{"status", name_of(status)}, {"reason", reason}};
}

Json with_finite_figures(Json reply, Status otherwise) {
  const std::string place = non_finite_place(reply);
  if (place.empty()) return reply;
  Json fault = failed_reply(otherwise, place + " is not a finite number");
  if (reply.contains("samples") && non_finite_place(reply["samples"]).empty())
    fault["samples"] = std::move(reply["samples"]);
  return fault;
}

Reply reply_of(const Json& json) {
  Reply reply;
  JsonReader reader(json, "");
  reader("status", reply.status);
  reader.text_or_null("reason", reply.reason);
  reader.maybe(kStopped, reply.was_stopped);
  reader.maybe(kWrong, reply.is_wrong);
  reader.maybe(kImpossible, reply.is_impossible);
  ATTN_CHECK(reply.status != Status::skipped && reply.status != Status::timeout,
             "status {} is not a child's to give", name_of(reply.status));
  ATTN_CHECK(!reply.is_ok() || reader.is_null("reason"), "a reason beside the status ok");
  ATTN_CHECK(reply.is_ok() || !reply.reason.empty(), "a status without a reason");
  reply.found = json;
  return reply;
}

Visit visit_of(const Reply& reply) {
  const auto visit = read_json<Visit>(reply.found);
  ATTN_CHECK(!visit.times.empty(), "samples: no times");
  return visit;
}

CellResult result_of(const Reply& reply, Measure measure) {
  CellResult result{
      .status = reply.row_status(), .reason = reply.reason, .is_gated = reply.is_wrong};
  if (reply.found.is_null()) return result;  // the process gave no reply of its own
  try {
    JsonReader reader(reply.found, "");
    figures(reader, measure, result);
    reader.maybe("cost", result.cost);
    reader.maybe("dtype", result.dtype);
    reader.maybe("sizes", result.sizes);
    reader.maybe("verified", result.verified);
  } catch (const Error& error) {
    return {.status = Status::failed,
            .reason = "the result makes no row: " + one_line(error.what())};
  }
  return result;
}

CheckReply verdict_of(const Reply& reply) { return read_json<CheckReply>(reply.found); }
Calibration calibration_of(const Reply& reply) {
  Calibration calibration;
  JsonReader(reply.found, "")(kCalibration, calibration);
  return calibration;
}
PilotFigures pilot_figures_of(const Reply& reply) { return read_json<PilotFigures>(reply.found); }

}  // namespace attn
