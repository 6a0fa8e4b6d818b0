// Checks of what a task says of the origin of its labels: the evidence determines them, and no
// distance exceeds it or looks ahead. Costs nothing beside the examples that other checks look at.
#include <algorithm>
#include <bit>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/check/task_checks.h"

namespace attn {
namespace {

// The evidence as a model sees it: positions, and what stands there. Edges count as evidence,
// because no list of positions can name them.
std::vector<int32_t> evidence_of(const Example& e, const TaskShape& shape) {
  std::vector<int32_t> seen;
  for (const int32_t at : e.evidence) {
    seen.push_back(at);
    const int64_t in_second = at - shape.length;
    if (in_second >= 0) {
      seen.push_back(e.second[static_cast<size_t>(in_second)]);
    } else if (!e.tokens.empty()) {
      seen.push_back(e.tokens[static_cast<size_t>(at)]);
    } else {
      for (int64_t c = 0; c < shape.channels; c++)
        seen.push_back(
            std::bit_cast<int32_t>(e.values[static_cast<size_t>(at * shape.channels + c)]));
    }
  }
  for (const auto& [from, to] : e.edges) seen.insert(seen.end(), {from, to});
  return seen;
}

std::vector<int32_t> answer_of(const Example& e) {
  std::vector<int32_t> answer = e.target;
  for (const float number : e.wanted) answer.push_back(std::bit_cast<int32_t>(number));
  return answer;
}

// The positions between the ends of the evidence within one document, and the position that answers
// for `here` among them.
int64_t span_of_evidence(const Example& e, const TaskShape& shape, int64_t here) {
  int64_t least[2] = {shape.length, 2 * shape.length}, most[2] = {-1, -1};
  const auto reach = [&](int64_t position) {
    const int document = position >= shape.length;
    least[document] = std::min(least[document], position);
    most[document] = std::max(most[document], position);
  };
  for (const int32_t position : e.evidence) reach(position);
  if (shape.per_token) reach(shape.compressed ? positions(e, shape) - 1 : here);
  return std::max<int64_t>({0, most[0] - least[0], most[1] - least[1]});
}

}  // namespace

// If the evidence of two examples is the same, their answers must be the same. At least three
// quarters of the examples must name their evidence, or the distances describe only some of them.
// This check runs at the default parameters only: with others an input may be so short that two
// examples share their evidence by chance (listops).
void check_evidence(const TaskSubject& subject, Verdict& verdict) {
  constexpr double kForgotten = 0.25;
  if (!subject.defaults()) return verdict.skip("the evidence is compared at the defaults");
  const TaskShape shape = subject.task().shape();
  std::map<std::vector<int32_t>, std::pair<const Example*, std::string>> first;
  double known = 0, total = 0, alike = 0;
  const auto look_at = [&](Split split, int64_t count) {
    int64_t i = -1;
    for (const Example& e : subject.examples(split, count)) {
      i++, total++;
      if (e.evidence.empty()) continue;
      known++;
      const std::string where = fmt::format("{} example {}", to_string(split), i);
      const auto [found, added] = first.try_emplace(evidence_of(e, shape), &e, where);
      if (added) continue;
      alike++;
      if (answer_of(*found->second.first) != answer_of(e))
        verdict.require(false,
                        "{} and {} have the same evidence and different answers: the evidence must "
                        "determine the label",
                        found->second.second, where);
    }
  };
  look_at(Split::test, subject.count(Split::test, 4));
  look_at(Split::train, subject.count(Split::train));
  if (!verdict.failed())
    verdict.expect(known == 0 ? 0 : 1 - known / total, kForgotten,
                   "{} of {} examples name their evidence; {} share that of another one", known,
                   total, alike);
}

// A distance where a label is scored and its evidence known, of fewer positions than its document
// has, and within the evidence; none where nothing is scored. An answer that is not a label per
// position has one. A causal model sees nothing behind a position.
void check_distances(const TaskSubject& subject, Verdict& verdict) {
  const TaskShape shape = subject.task().shape();
  const bool each = shape.per_token, causal = each && shape.causal && !shape.compressed;
  int64_t i = -1;
  for (const Example& e : subject.examples(Split::test, subject.count(Split::test))) {
    i++;
    const size_t answers = each ? e.target.size() : 1;
    verdict.require(e.distances.empty() || e.distances.size() == answers,
                    "test example {} has {} distances and {} answers", i, e.distances.size(),
                    answers);
    verdict.require(e.evidence.empty() || !e.distances.empty(),
                    "test example {} has {} pieces of evidence and {} distances", i,
                    e.evidence.size(), e.distances.size());
    const int64_t length = std::max<int64_t>(positions(e, shape), std::ssize(e.second));
    for (size_t at = 0; at < std::min(e.distances.size(), answers); at++) {
      const int64_t distance = e.distances[at], here = static_cast<int64_t>(at);
      const bool scored = !each || e.target[at] != kIgnoredLabel;
      verdict.require(scored ? distance >= 0 && distance < length : distance == -1,
                      "test example {}, position {}, {}: distance {} in an input of {}", i, at,
                      scored ? "scored" : "not scored", distance, length);
      if (!scored || e.evidence.empty()) continue;
      const int64_t span = span_of_evidence(e, shape, here);
      verdict.require(distance <= span,
                      "test example {}, position {}: distance {}, its evidence spans {}", i, at,
                      distance, span);
      if (causal && (distance > here || e.evidence.front() > here))
        verdict.require(false,
                        "test example {}, position {}: distance {} with evidence from {} on, and a "
                        "causal model sees nothing later",
                        i, at, distance, e.evidence.front());
    }
  }
}

}  // namespace attn
