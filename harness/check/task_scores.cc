// Checks of the labels and scores of a task: labels vary, chance is at most the share of the most
// frequent label (or is the error of the best constant, or the bits of one class among all), and
// shortcuts are valid scores, which solve controls alone. Costs a few hundred examples.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness/check/task_checks.h"

namespace attn {
namespace {

constexpr double kSigmas = 5;          // one false alarm in two million
constexpr double kLargestShare = 0.9;  // an answer of more than that leaves nothing to learn

struct Answers {
  double total = 0, majority = 0;  // all of them, and those equal to the most frequent one
  size_t different = 0;
};

// Labels one by one, output sequences whole, numbers by their bits.
Answers count_answers(const TaskSubject& subject, Split split) {
  const TaskShape shape = subject.task().shape();
  std::map<std::vector<int32_t>, double> counts;
  Answers answers;
  for (const Example& e : subject.examples(split, subject.count(split, 4))) {
    if (shape.outputs > 0) counts[e.target]++;
    for (const float number : e.wanted) counts[{std::bit_cast<int32_t>(number)}]++;
    for (const int32_t label : e.target)
      if (shape.outputs == 0 && label != kIgnoredLabel) counts[{label}]++;
  }
  for (const auto& [answer, count] : counts) {
    answers.total += count;
    answers.majority = std::max(answers.majority, count);
  }
  answers.different = counts.size();
  return answers;
}

// Of the numbers to predict: their variance, which is the error of the best constant, and its
// standard error.
struct Spread {
  double variance = 0, standard_error = 0;
};

Spread spread_of_numbers(const TaskSubject& subject, int64_t count) {
  std::vector<double> numbers;
  for (const Example& e : subject.examples(Split::test, count))
    numbers.push_back(static_cast<double>(e.wanted[0]));
  const auto n = static_cast<double>(count);
  double mean = 0, square = 0, fourth = 0;
  for (const double x : numbers) mean += x / n;
  for (const double x : numbers) {
    const double deviation = (x - mean) * (x - mean);
    square += deviation / n;
    fourth += deviation * deviation / n;
  }
  return {square, std::sqrt(std::max(0.0, fourth - square * square) / n)};
}

void check_constant_error(const TaskSubject& subject, Verdict& verdict) {
  const double chance = subject.task().chance();
  verdict.require(chance > 0 && std::isfinite(chance), "chance is {}", chance);
  const int64_t count = subject.count(Split::test, 4);
  const auto [variance, error] = spread_of_numbers(subject, count);
  const double bias = variance / static_cast<double>(count);  // the mean is taken from the same
  verdict.expect(std::abs(chance - variance), kSigmas * error + bias,
                 "chance is {:.4f}, the best constant's error on {} examples {:.4f}", chance, count,
                 variance);
}

// The first shortcut must be the constant, and not worse than chance.
void check_first(const TaskSubject& subject, const Shortcut& first, int64_t count,
                 Verdict& verdict) {
  const Task& task = subject.task();
  const bool real = task.shape().real, bits = task.shape().bits;
  const char* const wanted = real ? "mean of the answers" : bits ? "label frequencies" : "majority";
  verdict.require(first.name.find(wanted) != std::string::npos, "the first shortcut is {}",
                  first.name);
  const double chance = task.chance();
  const auto n = static_cast<double>(count);
  double tolerance = kSigmas * std::sqrt(std::max(0.0, chance * (1 - chance)) / n);
  if (real) {  // the error's own deviation, and that of the means fitted and scored on
    const auto [variance, error] = spread_of_numbers(subject, count);
    tolerance = kSigmas * error + 2 * kSigmas * kSigmas * variance / n;
  }
  // Frequencies that are fitted on labels of which each comes as often cost a little.
  if (bits) tolerance = 0.05 * chance;
  const double worse = real || bits ? first.score - chance : chance - first.score;
  verdict.expect(worse, tolerance, "{} scores {:.3f}, chance is {:.3f}", first.name, first.score,
                 chance);
}

}  // namespace

// Of the training examples too: files sorted by their labels begin with one of them.
void check_balance(const TaskSubject& subject, Verdict& verdict) {
  for (const Split split : {Split::test, Split::train}) {
    const Answers answers = count_answers(subject, split);
    verdict.expect(answers.majority / answers.total, kLargestShare,
                   "the most frequent of {} answers is {:.2f} of {} in the {} split",
                   answers.different, answers.majority / answers.total, answers.total,
                   to_string(split));
  }
}

// Always giving the most frequent answer cannot be worse than guessing.
void check_chance(const TaskSubject& subject, Verdict& verdict) {
  const Task& task = subject.task();
  const TaskShape shape = task.shape();
  if (shape.real) return check_constant_error(subject, verdict);
  const double chance = task.chance();
  if (shape.bits)
    return verdict.expect(std::abs(chance - std::log2(static_cast<double>(shape.classes))), 1e-9,
                          "chance is {:.4f} bits with {} classes", chance, shape.classes);
  if (shape.outputs > 0) {
    verdict.require(chance >= 0 && chance < 1, "chance is {}", chance);
  } else {
    verdict.require(chance > 0 && chance < 1, "chance is {}", chance);
    verdict.require(chance >= 1.0 / static_cast<double>(shape.classes) * (1 - 1e-9),
                    "chance is {:.4f} with {} classes", chance, shape.classes);
  }
  const Answers answers = count_answers(subject, Split::test);
  verdict.expect(chance * static_cast<double>(answers.different), 1 + 1e-9,
                 "chance is {:.4f}, with {} different answers seen: a product of {:.3f}", chance,
                 answers.different, chance * static_cast<double>(answers.different));
  const double share = answers.majority / answers.total;
  const double error = std::sqrt(chance * (1 - chance) / answers.total);
  verdict.expect(chance - share, kSigmas * error,
                 "chance is {:.3f}, the most frequent answer is {:.3f} of {}", chance, share,
                 answers.total);
}

namespace {

// The better end of both kinds of score: 1 is a solved task, 0 chance.
double solved(const Task& task, double score) {
  const double chance = task.chance();
  return is_error(task.shape()) ? 1 - score / chance : (score - chance) / (1 - chance);
}

// Whether the token at one place, counted from the start or from the end, tells every label. More
// certain than the fitted shortcuts, which have few examples here.
std::string telling_place(const TaskSubject& subject) {
  const TaskShape shape = subject.task().shape();
  if (shape.vocab == 0 || shape.per_token || shape.outputs > 0 || shape.real || shape.pairs)
    return "";
  constexpr size_t kEach = 4;  // examples for each token: what came once tells nothing
  const std::span<const Example> examples =
      subject.examples(Split::test, subject.count(Split::test, 4));
  for (const bool from_end : {false, true})
    for (size_t place = 0;; place++) {
      std::map<int32_t, int32_t> labels;  // by the token there
      bool tells = true, reached = false;
      for (const Example& e : examples) {
        if (place >= e.tokens.size()) {
          tells = false;
          continue;
        }
        reached = true;
        const int32_t token = e.tokens[from_end ? e.tokens.size() - 1 - place : place];
        tells = labels.try_emplace(token, e.target[0]).first->second == e.target[0];
        if (!tells) break;
      }
      if (!reached) break;
      if (tells && labels.size() * kEach <= examples.size())
        return fmt::format("the token at place {} from the {}", place, from_end ? "end" : "start");
    }
  return "";
}

// A task that a shortcut solves needs no attention and must say so (TaskInfo::control); one that
// says so must be solved, or better than by half on these few examples. Where the constant solves
// it, the check of balance says that.
void check_control(const TaskSubject& subject, const std::vector<Shortcut>& shortcuts,
                   Verdict& verdict) {
  constexpr double kSolved = 0.99, kHalf = 0.5;
  const Task& task = subject.task();
  if (!subject.defaults() || solved(task, shortcuts[0].score) >= kSolved) return;
  double best = 0;
  std::string which = "none";
  for (const auto& [name, score] : shortcuts)
    if (solved(task, score) > best) best = solved(task, score), which = name;
  if (subject.info().control.empty()) {
    if (const std::string place = telling_place(subject); !place.empty()) which = place, best = 1;
    if (best >= kSolved)
      verdict.require(false,
                      "{} solves the task: does the input tell the label? A task that needs no "
                      "attention names the shortcut in `control`",
                      which);
    return;
  }
  if (best < kHalf)
    verdict.require(false,
                    "declared a control that {} solves; the best shortcut, '{}', reaches {:.2f} "
                    "of the way from chance",
                    subject.info().control, which, best);
}

}  // namespace

void check_shortcuts(const TaskSubject& subject, Verdict& verdict) {
  const int64_t count = subject.some(200);
  const Task& task = subject.task();
  const std::vector<Shortcut> shortcuts = task.shortcuts(1, count, count),
                              again = task.shortcuts(1, count, count);
  verdict.require(!shortcuts.empty() && shortcuts.size() == again.size(), "{} shortcuts, then {}",
                  shortcuts.size(), again.size());
  std::set<std::string> names;
  const double most = is_error(task.shape()) ? std::numeric_limits<double>::max() : 1;
  for (size_t i = 0; i < std::min(shortcuts.size(), again.size()); i++) {
    const auto& [name, score] = shortcuts[i];
    verdict.require(score >= 0 && score <= most, "shortcut {} scores {}", name, score);
    if (name.empty() || !names.insert(name).second)
      verdict.require(false, "two shortcuts are named '{}': rows keep one score of a name", name);
    verdict.require(score == again[i].score, "shortcut {} scores {}, then {}", name, score,
                    again[i].score);
  }
  if (shortcuts.empty()) return;
  check_first(subject, shortcuts[0], count, verdict);
  check_control(subject, shortcuts, verdict);
}

}  // namespace attn
