// The gate: no figure of a variant or task is published while its quick contract checks are red.
#include <algorithm>
#include <set>

#include "harness/sweep/key.h"
#include "harness/sweep/outcome.h"
#include "harness/sweep/sweeper.h"

namespace attn {
namespace {

constexpr double kLeastTime =
    60;  // seconds: a short limit for cells must not make a sound variant red

// Empty when the subject passed; otherwise why its cells must fail.
std::string verdict(const ChildResult& result, double timeout_s) {
  const Json reply = reply_of(result, timeout_s);
  if (reply["status"] != "ok")
    return fmt::format("contract checks did not finish: {}", reply["reason"].get<std::string>());
  const Json red = reply.value("red", Json("?")), detail = reply.value("detail", Json(""));
  if (red.is_null()) return "";
  if (!red.is_string() || !detail.is_string()) return "contract checks gave no verdict";
  return fmt::format("contract check '{}' is red: {}", red.get<std::string>(),
                     detail.get<std::string>());
}

}  // namespace

void Sweeper::check_contracts() {
  std::map<std::string, std::string> red;  // subject -> why
  std::vector<Json> requests;
  std::vector<std::string> subjects;
  std::set<std::string> seen;
  const auto add = [&](const char* kind, const Json& plugin) {
    const std::string subject = plugin_text(plugin);
    if (!seen.insert(subject).second) return;
    subjects.push_back(subject);
    requests.push_back({{"do", "check"}, {kind, plugin}});
  };
  const std::vector<size_t> cells = missing("");
  const double timeout_s = std::max(timeout_s_, kLeastTime);
  for (const size_t cell : cells) {
    add("variant", plan_.cells[cell].key["variant"]);
    if (const Json& task = plan_.cells[cell].key["task"]; !task.is_null()) add("task", task);
  }

  if (!subjects.empty()) begin_phase("contract checks", subjects.size());
  ChildPool pool;
  size_t next = 0;
  while (!stopping() && (next < subjects.size() || pool.running() > 0)) {
    while (next < subjects.size() && pool.running() < static_cast<size_t>(jobs_)) {
      announce("checking " + subjects[next]);
      pool.start(next, child(requests[next], timeout_s));
      next++;
    }
    const auto ended = pool.wait();
    if (!ended) return;  // interrupted
    const std::string why = verdict(ended->second, timeout_s);
    if (!why.empty()) red[subjects[ended->first]] = why;
  }
  for (const size_t cell : cells) {
    const Json& key = plan_.cells[cell].key;
    auto it = red.find(plugin_text(key["variant"]));
    if (it == red.end() && !key["task"].is_null()) it = red.find(plugin_text(key["task"]));
    if (it == red.end() || stopping()) continue;
    result_.gate_failed = true;
    finish(cell, {{"status", "failed"}, {"reason", it->second}, {"gate", "red"}}, utc_now(), 0);
  }
}

}  // namespace attn
