// The gate: no figure of a variant or task is published while its quick contract checks are red.
#include <algorithm>
#include <map>

#include "harness/cell/codec.h"
#include "harness/cell/source_hash.h"
#include "harness/check/double_checks.h"
#include "harness/plan/machine_and_build.h"
#include "harness/plan/python_variants.h"
#include "harness/process/outcome.h"
#include "harness/run/sweeper.h"
#include "harness/store/user_cache.h"
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
  const std::optional<CheckReply> verdict = found_in(reply, verdict_of);
  if (!verdict) return {.status = Status::failed, .reason = "contract checks gave no verdict"};
  if (!verdict->red) return {};
  return {.status = Status::failed,
          .reason = fmt::format("contract check '{}' is red: {}", *verdict->red, verdict->detail),
          .is_gated = true};
}

PublishedShape shape_of_all_heads(const CellKey& key) {
  if (!key.training)
    return {.heads = key.axes.heads.value(),
            .head_dim = key.axes.head_dim.value(),
            .threads = key.axes.threads.value_or(1),
            .causal = key.axes.causal.value_or(false) || key.axes.mode == Mode::decode};
  const int64_t heads = key.training->integer("heads");
  return {.heads = heads,
          .head_dim = key.training->integer("width") / heads,
          .threads = key.axes.threads.value_or(1),
          .causal = key.axes.causal.value_or(false)};
}

// The shape, again in bfloat16 or with the cache where the cell says so, and where query heads
// share keys, its decoding, whose state the rows of causal cells tell. A forward pass repeats keys,
// and takes them as if each head had its own.
std::vector<PublishedShape> published_shapes(const CellKey& key) {
  std::vector<PublishedShape> shapes = {shape_of_all_heads(key)};
  if (key.axes.dtype) {
    shapes.push_back(shapes[0]);
    shapes.back().dtype = key.axes.dtype;
  }
  const int64_t kv_heads =
      key.training ? key.training->integer("kv_heads") : key.axes.kv_heads.value_or(0);
  if (shapes[0].causal && kv_heads != 0 && kv_heads != shapes[0].heads) {
    shapes.push_back(shapes[0]);
    shapes.back().kv_heads = kv_heads;
    if (key.axes.dtype) {
      shapes.push_back(shapes.back());
      shapes.back().dtype = key.axes.dtype;
    }
  }
  if (key.axes.kv_dtype) {
    shapes.push_back(shapes.back());
    shapes.back().dtype.reset();
    shapes.back().kv_dtype = key.axes.kv_dtype;
  }
  return shapes;
}

// A variant or a task whose checks must have passed.
struct GateSubject {
  std::string name;
  Request request{.what = Asked::check};
  std::string data;  // the fingerprint of what a task reads
};

// All that the outcome of the checks depends on: the sources are known by their hashes. One hash
// for the checks at the usual shapes, and one for each shape that will be published.
std::vector<std::string> hashes_of_checks(const GateSubject& subject) {
  const bool task = subject.request.task.has_value();
  const std::string& name = (task ? subject.request.task : subject.request.variant)->name;
  const auto hash = [&](const std::vector<PublishedShape>& shapes) {
    Request request = subject.request;
    request.shapes = shapes;
    const PythonVariant* const python = task ? nullptr : python_variant(name);
    return hash_of({machine_and_build() + (python ? " torch " + python->torch : ""),
                    source_hash("harness", "check"),
                    source_hash("variants", exact_reference().name),  // that checks compare with
                    source_hash(task ? "tasks" : "variants", name), subject.data,
                    attn_check::checks_in_double() ? "and in double" : "", to_json(request)});
  };
  std::vector<std::string> hashes = {hash({})};
  for (const PublishedShape& shape : subject.request.shapes) hashes.push_back(hash({shape}));
  return hashes;
}

}  // namespace

void Sweeper::check_contracts() {
  std::map<std::string, CellResult> unpassed;  // by subject
  std::vector<GateSubject> subjects;
  std::map<std::string, size_t> index_of;
  const auto add = [&](std::optional<Plugin> Request::*kind, const Plugin& plugin) -> GateSubject& {
    const auto [at, is_new] = index_of.emplace(plugin_text(plugin), subjects.size());
    if (is_new) {
      subjects.push_back({.name = at->first});
      subjects.back().request.*kind = plugin;
    }
    return subjects[at->second];
  };
  const std::vector<size_t> cells = missing();
  const double timeout_s = std::max(timeout_s_, kLeastTime);
  for (const size_t cell : cells) {
    const CellKey& key = plan_.cells[cell].key;
    for (const Plugin& variant : variants_of(key)) {
      std::vector<PublishedShape>& shapes = add(&Request::variant, variant).request.shapes;
      for (const PublishedShape& shape : published_shapes(key))
        if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
    }
    if (key.task) add(&Request::task, *key.task).data = key.source.data;
  }

  UserCache passed(request_.passed_checks);
  std::vector<size_t> wanted;
  for (size_t subject = 0; subject < subjects.size(); subject++) {
    const std::vector<std::string> hashes = hashes_of_checks(subjects[subject]);
    const auto is_new = [&](const std::string& hash) {
      return request_.force || passed.find(hash) == nullptr;
    };
    if (std::none_of(hashes.begin(), hashes.end(), is_new)) continue;
    wanted.push_back(subject);
    // The shapes that passed are left out.
    std::vector<PublishedShape> shapes;
    for (size_t i = 1; i < hashes.size(); i++)
      if (is_new(hashes[i])) shapes.push_back(subjects[subject].request.shapes[i - 1]);
    subjects[subject].request.shapes = shapes;
  }
  if (!wanted.empty()) begin_phase("contract checks", wanted.size());
  ChildPool pool;
  size_t next = 0;
  while (!stopping() && (next < wanted.size() || pool.running() > 0)) {
    while (next < wanted.size() && pool.running() < static_cast<size_t>(jobs_)) {
      const size_t subject = wanted[next++];
      announce("checking " + subjects[subject].name);
      ChildSpec check = child(subjects[subject].request, timeout_s);
      // Several checks run at once, of two threads each: a thread that waits must give its core up.
      check.environment = {"OMP_WAIT_POLICY=passive"};
      pool.start(subject, check);
    }
    const auto ended = pool.wait();
    if (!ended) return;  // interrupted
    CellResult found = verdict(ended->second, timeout_s);
    if (found.status != Status::ok) {
      unpassed[subjects[ended->first].name] = std::move(found);
      continue;
    }
    std::map<std::string, Json> times;
    for (const std::string& hash : hashes_of_checks(subjects[ended->first]))
      times[hash] = utc_now();
    passed.keep(times);
  }
  for (const size_t cell : cells) {
    const CellKey& key = plan_.cells[cell].key;
    auto it = unpassed.end();
    for (const Plugin& variant : variants_of(key))
      if (it == unpassed.end()) it = unpassed.find(plugin_text(variant));
    if (it == unpassed.end() && key.task) it = unpassed.find(plugin_text(*key.task));
    if (it == unpassed.end() || stopping()) continue;
    finish(cell, it->second, utc_now(), 0);
  }
}

}  // namespace attn
