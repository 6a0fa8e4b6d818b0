// Ends of processes to statuses; see outcome.h.
#include "harness/process/outcome.h"

#include <signal.h>

#include <utility>

#include "core/base/check.h"
#include "harness/cell/codec.h"
#include "harness/store/parse.h"

namespace attn {
namespace {

Reply failure(Status status, std::string reason, const ChildResult& result) {
  const std::string said = one_line(result.error_tail);
  if (!said.empty()) reason += ": " + said;
  return {.status = status, .reason = std::move(reason), .was_stopped = false, .found = nullptr};
}

}  // namespace

Reply outcome_of(const ChildResult& result, double timeout_s) {
  using End = ChildResult::End;
  if (result.end == End::timeout)
    return failure(Status::timeout, fmt::format("not done after {:g} s", timeout_s), result);
  if (result.end == End::signalled && result.code == SIGKILL)
    return failure(Status::oom,
                   "killed by the system, which is how it ends a process when memory runs out",
                   result);
  if (result.end == End::signalled)
    return failure(Status::failed, "ended by " + signal_name(result.code), result);
  if (result.code != 0)
    return failure(Status::failed, fmt::format("ended with exit code {}", result.code), result);
  std::string fault;
  try {
    const Parsed parsed = parse_json(result.output);
    if (parsed.fault.empty()) return reply_of(parsed.value);
    fault = parsed.fault;
  } catch (const Error& error) {
    fault = one_line(error.what());
  }
  return failure(Status::failed, "its process gave no result: " + fault, result);
}

}  // namespace attn
