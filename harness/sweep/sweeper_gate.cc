// The gate: no figure of a variant or task is published while its quick contract checks are red.
#include <algorithm>
#include <map>

#include "harness/cell/codec.h"
#include "harness/sweep/outcome.h"
#include "harness/sweep/sweeper.h"
#include "harness/sweep/typed_choice.h"
#include "harness/sweep/user_cache.h"
#include "variants/catalog.h"

namespace attn {
namespace {

constexpr double kLeastTime =
    60;  // seconds: a short limit for cells must not make a sound variant red

// ok when the subject passed; otherwise what its cells end with. Only a red check gates them.
CellResult verdict(const ChildResult& result, double timeout_s) {
  const Reply reply = outcome_of(result, timeout_s);
  if (!reply.is_ok())
    return {.status = reply.status, .reason = "contract checks did not finish: " + reply.reason};
  const std::optional<Verdict> verdict = found_in(reply, verdict_of);
  if (!verdict) return {.status = Status::failed, .reason = "contract checks gave no verdict"};
  if (!verdict->red) return {};
  return {.status = Status::failed,
          .reason = fmt::format("contract check '{}' is red: {}", *verdict->red, verdict->detail),
          .is_gated = true};
}

PublishedShape published_shape(const CellKey& key) {
  if (!key.training)
    return {.heads = key.axes.heads.value(),
            .head_dim = key.axes.head_dim.value(),
            .threads = key.axes.threads.value_or(1),
            .causal = key.axes.causal.value_or(false) || key.axes.mode == Mode::decode};
  const int64_t heads = key.training->integer("heads");
  return {.heads = heads,
          .head_dim = key.training->integer("width") / heads,
          .threads = 1,
          .causal = key.axes.causal.value_or(false)};
}

// All that the outcome of the checks depends on: the sources are known by their hashes.
std::string hash_of_checks(const Request& request) {
  const bool task = request.task.has_value();
  const std::string& name = (task ? request.task : request.variant)->name;
  return hash_of({UserCache::machine(), source_hash("harness", "check"),
                  source_hash("variants", exact_reference().name),  // that checks compare with
                  source_hash(task ? "tasks" : "variants", name), to_json(request)});
}

}  // namespace

void Sweeper::check_contracts() {
  std::map<std::string, CellResult> unpassed;  // by subject
  std::vector<Request> requests;
  std::vector<std::string> subjects;
  std::map<std::string, size_t> request_of;  // subject -> its request
  const auto add = [&](std::optional<Plugin> Request::*kind, const Plugin& plugin) -> Request& {
    const auto [at, is_new] = request_of.emplace(plugin_text(plugin), requests.size());
    if (is_new) {
      subjects.push_back(at->first);
      requests.push_back({.what = Asked::check});
      requests.back().*kind = plugin;
    }
    return requests[at->second];
  };
  const std::vector<size_t> cells = missing();
  const double timeout_s = std::max(timeout_s_, kLeastTime);
  for (const size_t cell : cells) {
    const CellKey& key = plan_.cells[cell].key;
    std::vector<PublishedShape>& shapes = add(&Request::variant, key.variant).shapes;
    const PublishedShape shape = published_shape(key);
    if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
    if (key.task) add(&Request::task, *key.task);
  }

  UserCache passed(request_.passed_checks);
  const auto done = [&](size_t subject) {
    return !request_.force && passed.find(hash_of_checks(requests[subject])) != nullptr;
  };
  std::vector<size_t> wanted;
  for (size_t subject = 0; subject < subjects.size(); subject++)
    if (!done(subject)) wanted.push_back(subject);
  if (!wanted.empty()) begin_phase("contract checks", wanted.size());
  ChildPool pool;
  size_t next = 0;
  while (!stopping() && (next < wanted.size() || pool.running() > 0)) {
    while (next < wanted.size() && pool.running() < static_cast<size_t>(jobs_)) {
      const size_t subject = wanted[next++];
      announce("checking " + subjects[subject]);
      ChildSpec check = child(requests[subject], timeout_s);
      // Several checks of two threads each run at once: threads that wait must not hold a core.
      check.environment = {"OMP_WAIT_POLICY=passive"};
      pool.start(subject, check);
    }
    const auto ended = pool.wait();
    if (!ended) return;  // interrupted
    CellResult found = verdict(ended->second, timeout_s);
    if (found.status != Status::ok)
      unpassed[subjects[ended->first]] = std::move(found);
    else
      passed.keep(hash_of_checks(requests[ended->first]), utc_now());
  }
  for (const size_t cell : cells) {
    const CellKey& key = plan_.cells[cell].key;
    auto it = unpassed.find(plugin_text(key.variant));
    if (it == unpassed.end() && key.task) it = unpassed.find(plugin_text(*key.task));
    if (it == unpassed.end() || stopping()) continue;
    result_.gate_failed = result_.gate_failed || it->second.is_gated;
    finish(cell, it->second, utc_now(), 0);
  }
}

}  // namespace attn
