// Cells, rows, requests and replies as JSON: the only place where they meet it. What is read and
// does not fit is an Error of one line: "metrics.flops: expected number, got null".
#pragma once

#include <optional>
#include <string>
#include <type_traits>

#include "core/base/check.h"
#include "harness/cell/request.h"
#include "harness/cell/row.h"

namespace attn {

Json to_json(const Plugin& plugin);
Json to_json(const Axes& axes);
Json to_json(const ParamValue& value);
Json to_json(const Params& params);
Json to_json(const CellKey& key);
Json to_json(const RunConfig& config);
Json to_json(const RunLine& line);
Json to_json(const Row& row);
Json to_json(const Request& request);
Json to_json(const PilotFigures& figures);
Json to_json(const FloorAt& floor);

RunLine run_line_of(const Json& json);
Row row_of(const Json& json);
Request request_of(const Json& json);
PilotFigures read_pilot_figures(const Json& json);
FloorAt floor_at_of(const Json& json);

std::string id_of(const CellKey& key);  // 16 hexadecimal digits
// A text that two keys share where they differ in nothing but the variant.
std::string group_of(const CellKey& key);

// The child's side: whole replies.
Json reply_with(const Visit& visit);
Json reply_with(Measure measure, const CellResult& result);
Json reply_with(const CheckReply& verdict);
Json reply_with(const Calibration& calibration);
Json reply_with(const PilotFigures& figures);
Json failed_reply(Status status, const std::string& reason);
// `reply` where all its figures are finite numbers; else, since a row cannot hold it, a reply of
// status `otherwise` with the reason, and with the samples that can be kept of a run that diverged.
Json with_finite_figures(Json reply, Status otherwise);

// The parent's side. Error where `json` is not an object with a status and its reason.
Reply reply_of(const Json& json);
Visit visit_of(const Reply& reply);
// A reply that is no result of `measure` gives one of status failed, with the reason.
CellResult result_of(const Reply& reply, Measure measure);
CheckReply verdict_of(const Reply& reply);
Calibration calibration_of(const Reply& reply);
PilotFigures pilot_figures_of(const Reply& reply);
// By one of these functions; nullopt where the reply is not ok or does not fit.
template <class Read>
auto found_in(const Reply& reply, Read read)
    -> std::optional<std::invoke_result_t<Read, const Reply&>> {
  if (!reply.is_ok()) return std::nullopt;
  try {
    return read(reply);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace attn
