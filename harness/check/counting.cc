// Each point costs two forward passes, and a decoder if the variant decodes; see counting.h.
#include "harness/check/counting.h"

#include <algorithm>
#include <cmath>

#include "variants/api/counted_cost.h"

namespace attn {

std::optional<std::string> Counting::why_not(const Point& at) const {
  return info_.why_not(at.shape, Params(info_.name, info_.params, at.given));
}

Counted Counting::count(const Point& at) const {
  const auto attention = info_.build({.heads = at.shape.heads,
                                      .head_dim = at.shape.head_dim,
                                      .max_len = at.shape.kv_len,
                                      .causal = at.shape.causal,
                                      .params = {}},
                                     at.given);
  const CountedCost seen = counted_cost(*attention, at.shape);
  const double size = sizeof(real);
  return {seen.flops, seen.peak_bytes / size,
          held_state_bytes(info_, at.given, at.shape).value_or(0) / size};
}

Point Counting::middle(bool causal) const {
  return {{.batch = 1, .heads = 1, .q_len = 384, .kv_len = 384, .head_dim = 32, .causal = causal},
          given_};
}

std::vector<int64_t> Counting::levels(const std::string& name) const {
  const auto spec = std::find_if(info_.params.begin(), info_.params.end(),
                                 [&](const ParamSpec& one) { return one.name == name; });
  const int64_t given = Params(info_.name, info_.params, given_).integer(name);
  std::vector<int64_t> usable;
  for (const int64_t value : given >= 4 ? std::vector<int64_t>{given / 2, given, given + given / 2}
                                        : std::vector<int64_t>{given, 2 * given, 3 * given}) {
    if (static_cast<double>(value) < spec->min || static_cast<double>(value) > spec->max) continue;
    Point at = middle(false), causal = middle(true);
    at.given[name] = causal.given[name] = value;
    if (can_run(at) || can_run(causal)) usable.push_back(value);
  }
  return usable;
}

double Counting::change(const std::string& name) const {
  double most = 0;
  for (const bool causal : {false, true}) {
    const Point base = middle(causal);
    if (!can_run(base)) continue;
    const Counted before = count(base);
    for (const int64_t value : levels(name)) {
      Point other = base;
      other.given[name] = value;
      if (!can_run(other)) continue;
      const Counted after = count(other);
      for (double Counted::*field : {&Counted::flops, &Counted::peak, &Counted::state})
        if (before.*field > 0) most = std::max(most, std::abs(after.*field / before.*field - 1));
    }
  }
  return most;
}

std::vector<std::string> Counting::params() const {
  const Params chosen(info_.name, info_.params, given_);
  std::vector<std::pair<double, std::string>> found;
  for (const ParamSpec& spec : info_.params) {
    if (!std::holds_alternative<int64_t>(spec.value) || !spec.counts(chosen.values())) continue;
    if (const double by = change(spec.name); by > 1e-6) found.emplace_back(-by, spec.name);
  }
  std::sort(found.begin(), found.end());
  if (found.size() > kMostParams) found.resize(kMostParams);
  std::vector<std::string> names;
  for (const auto& [by, name] : found) names.push_back(name);
  return names;
}

}  // namespace attn
