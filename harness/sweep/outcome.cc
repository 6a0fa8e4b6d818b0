// Ends of processes to statuses; see outcome.h.
#include "harness/sweep/outcome.h"

#include <signal.h>

#include "core/base/check.h"
#include "harness/store/parse.h"

namespace attn {
namespace {

Json failure(const char* status, std::string reason, const ChildResult& result) {
  const std::string said = one_line(result.error_tail);
  if (!said.empty()) reason += ": " + said;
  return {{"status", status}, {"reason", std::move(reason)}};
}

// What every reply holds; the rest depends on the request.
std::string reply_fault(const Json& reply) {
  if (!reply.is_object() || !reply.contains("status") || !reply.contains("reason"))
    return "an object with status and reason is expected";
  const Json &status = reply["status"], &reason = reply["reason"];
  if (status == "ok") return reason.is_null() ? "" : "a reason beside the status ok";
  for (const char* known : {"failed", "diverged", "oom"})
    if (status == known) return reason.is_string() ? "" : "a status without a reason";
  return fmt::format("status {} is unknown",
                     status.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

Json with_finite_figures(Json reply, const char* otherwise) {
  const std::string place = non_finite_place(reply);
  if (place.empty()) return reply;
  Json fault = {{"status", otherwise}, {"reason", place + " is not a finite number"}};
  if (reply.contains("samples") && non_finite_place(reply["samples"]).empty())
    fault["samples"] = std::move(reply["samples"]);
  return fault;
}

std::string one_line(std::string_view text, size_t most) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  const bool cut = text.size() > most;
  if (cut) text.remove_prefix(text.size() - most);
  std::string line = cut ? "... " : "";
  for (const char c : text) {
    const bool plain = c >= 0x20 && c < 0x7f;  // bytes of a cut UTF-8 character would spoil the row
    if (plain)
      line += c;
    else if (c == '\n')
      line += "; ";
    else
      line += ' ';
  }
  return line;
}

Json reply_of(const ChildResult& result, double timeout_s) {
  using End = ChildResult::End;
  if (result.end == End::timeout)
    return failure("timeout", fmt::format("not done after {:g} s", timeout_s), result);
  if (result.end == End::signalled && result.code == SIGKILL)
    return failure(
        "oom", "killed by the system, which is how it ends a process when memory runs out", result);
  if (result.end == End::signalled)
    return failure("failed", "ended by " + signal_name(result.code), result);
  if (result.code != 0)
    return failure("failed", fmt::format("ended with exit code {}", result.code), result);
  auto [reply, fault] = parse_json(result.output);
  if (fault.empty()) fault = reply_fault(reply);
  if (!fault.empty()) return failure("failed", "its process gave no result: " + fault, result);
  return std::move(reply);
}

}  // namespace attn
