// What labels and scores say of a task: classes that are worth learning, a chance that is not above
// the majority's share, shortcuts that are scores. Costs a few hundred examples.
#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "harness/check/task_checks.h"

namespace attn {
namespace {

constexpr double kSigmas = 5;          // one false alarm in two million
constexpr double kLargestShare = 0.9;  // a class with more of the labels leaves nothing to learn

struct Labels {
  double total = 0, majority = 0;
  size_t classes = 0;
};

Labels count_labels(const TaskSubject& subject) {
  const Task& task = subject.task();
  std::map<int32_t, double> counts;
  Labels labels;
  for (int64_t i = 0; i < subject.count(Split::test, 4); i++)
    for (const int32_t label : task.example(1, Split::test, i).target)
      if (label != kIgnoredLabel) counts[label]++;
  for (const auto& [label, count] : counts) {
    labels.total += count;
    labels.majority = std::max(labels.majority, count);
  }
  labels.classes = counts.size();
  return labels;
}

}  // namespace

void check_balance(const TaskSubject& subject, Verdict& verdict) {
  const Labels labels = count_labels(subject);
  verdict.expect(labels.majority / labels.total, kLargestShare,
                 "the largest of {} classes has {:.2f} of {} labels", labels.classes,
                 labels.majority / labels.total, labels.total);
}

// Always answering the majority class cannot be worse than guessing.
void check_chance(const TaskSubject& subject, Verdict& verdict) {
  const Task& task = subject.task();
  const double chance = task.chance();
  verdict.require(chance > 0 && chance < 1, "chance is {}", chance);
  verdict.require(chance >= 1.0 / static_cast<double>(task.shape().classes) * (1 - 1e-9),
                  "chance is {:.4f} with {} classes", chance, task.shape().classes);
  const Labels labels = count_labels(subject);
  const double share = labels.majority / labels.total;
  const double error = std::sqrt(chance * (1 - chance) / labels.total);
  verdict.expect(chance - share, kSigmas * error,
                 "chance is {:.3f}, the majority class has {:.3f} of {} labels", chance, share,
                 labels.total);
}

void check_shortcuts(const TaskSubject& subject, Verdict& verdict) {
  const int64_t count = subject.some(200);
  const Task& task = subject.task();
  const std::vector<Shortcut> shortcuts = task.shortcuts(1, count, count),
                              again = task.shortcuts(1, count, count);
  verdict.require(!shortcuts.empty() && shortcuts.size() == again.size(), "{} shortcuts, then {}",
                  shortcuts.size(), again.size());
  for (size_t i = 0; i < std::min(shortcuts.size(), again.size()); i++) {
    const auto& [name, score] = shortcuts[i];
    verdict.require(score >= 0 && score <= 1, "shortcut {} scores {}", name, score);
    verdict.require(score == again[i].score, "shortcut {} scores {}, then {}", name, score,
                    again[i].score);
  }
  if (shortcuts.empty()) return;
  verdict.require(shortcuts[0].name.find("majority") != std::string::npos,
                  "the first shortcut is {}", shortcuts[0].name);
  const double error = std::sqrt(task.chance() * (1 - task.chance()) / static_cast<double>(count));
  verdict.expect(task.chance() - shortcuts[0].score, kSigmas * error,
                 "majority class scores {:.3f}, chance is {:.3f}", shortcuts[0].score,
                 task.chance());
}

}  // namespace attn
