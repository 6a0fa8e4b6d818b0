// One class with one deliberate fault; see broken_tasks.h.
#include "tests/conformance/broken_tasks.h"

#include <atomic>
#include <ostream>

#include "core/base/parallel.h"
#include "core/base/rng.h"
#include "tests/tasks/stored.h"

namespace attn {
namespace {

enum class Fault {
  none,
  none_read,  // and from a source of a few examples
  counts_calls,
  thread_dependent,
  id_out_of_range,
  too_long,
  label_off,
  no_label,
  evidence_outside,
  distance_too_long,
  distance_negative,
  same_in_all_splits,
  one_class,
  chance_too_high,
  chance_too_low,
  shortcut_above_one
};

enum class Answer { label, number, sequence, label_and_edges };

constexpr int64_t kLength = 12, kVocab = 17, kClasses = 4, kStored = 20;

class TinyTask final : public Task {
 public:
  TinyTask(const Params& params, Fault fault, Answer answer)
      : Task(params),
        fault_(fault),
        answer_(answer),
        source_(
            [this](Split split, int64_t index) {
              const bool same = fault_ == Fault::same_in_all_splits;
              Rng random = rng(same ? 0 : static_cast<uint64_t>(split), "tiny",
                               static_cast<uint64_t>(index));
              return do_example(random);
            },
            kStored) {}

 private:
  const Source* do_source() const override {
    return fault_ == Fault::same_in_all_splits || fault_ == Fault::none_read ? &source_ : nullptr;
  }
  Example do_example(Rng& random) const override {
    Example example;
    for (int64_t i = 0; i < kLength; i++)
      example.tokens.push_back(static_cast<int32_t>(random.between(1, kVocab - 1)));
    const bool other_thread = fault_ == Fault::thread_dependent && threads() == 2;
    if (other_thread && answer_ == Answer::label)
      example.tokens[1] = example.tokens[1] % (kVocab - 1) + 1;
    if (fault_ == Fault::id_out_of_range && random.below(6) == 0) example.tokens[3] = kVocab;
    if (fault_ == Fault::too_long) example.tokens.push_back(1);
    int32_t label = example.tokens[0] % kClasses;
    if (fault_ == Fault::label_off) label++;
    if (fault_ == Fault::one_class) label = 0;
    if (fault_ != Fault::no_label) example.target = {label};
    if (answer_ == Answer::number) {
      example.target.clear();
      const auto number = static_cast<float>(fault_ == Fault::one_class ? 1 : example.tokens[0]);
      example.wanted = {other_thread ? number + 1 : number};
    }
    if (answer_ == Answer::sequence)
      example.target.push_back(fault_ == Fault::one_class ? 0 : example.tokens[1] % kClasses);
    if (answer_ == Answer::label_and_edges) {
      for (int32_t i = 0; i < kLength; i++) example.edges.emplace_back(i, i);
      if (other_thread) example.edges.pop_back();
    }
    if (fault_ == Fault::distance_too_long) example.distances = {static_cast<int32_t>(kLength)};
    if (fault_ == Fault::distance_negative) example.distances = {-1};
    example.evidence = {fault_ == Fault::evidence_outside ? static_cast<int32_t>(kLength) : 0};
    if (fault_ == Fault::counts_calls && threads() == 1 && calls_++ % 2) example.evidence = {1};
    return example;
  }
  TaskShape do_shape() const override {
    return {.length = kLength,
            .vocab = kVocab,
            .classes = answer_ == Answer::number ? 1 : kClasses,
            .outputs = answer_ == Answer::sequence ? 2 : 0,
            .real = answer_ == Answer::number,
            .edges = answer_ == Answer::label_and_edges};
  }
  double do_chance() const override {
    if (fault_ == Fault::chance_too_high) return answer_ == Answer::number ? 90 : 0.9;
    if (fault_ == Fault::chance_too_low) return 0.01;
    if (answer_ == Answer::sequence) return 1.0 / (kClasses * kClasses);
    constexpr int64_t kTokens = kVocab - 1;  // 1 to 16, whose variance this is
    return answer_ == Answer::number ? static_cast<double>(kTokens * kTokens - 1) / 12 : 0.25;
  }
  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>&) const override {
    return {{"majority class", fault_ == Fault::shortcut_above_one ? 1.5 : 0.26}};
  }
  std::string do_draw(const Example&) const override { return "tiny"; }

  Fault fault_;
  Answer answer_;
  Stored source_;
  mutable std::atomic<int> calls_ = 0;
};

TaskInfo with_fault(const std::string& name, Fault fault, Answer answer = Answer::label) {
  TaskInfo info;
  info.name = name;
  info.params = {{"train_examples", 100, "size of the training set"}};
  info.make = [fault, answer](const Params& params) {
    return std::make_unique<TinyTask>(params, fault, answer);
  };
  return info;
}

}  // namespace

TaskInfo tiny_task() { return with_fault("tiny", Fault::none); }
TaskInfo tiny_read_task() { return with_fault("tiny_read", Fault::none_read); }
TaskInfo tiny_number_task() { return with_fault("tiny_number", Fault::none, Answer::number); }
TaskInfo tiny_sequence_task() { return with_fault("tiny_sequence", Fault::none, Answer::sequence); }
TaskInfo tiny_edges_task() {
  return with_fault("tiny_edges", Fault::none, Answer::label_and_edges);
}

void PrintTo(const BrokenTask& broken, std::ostream* out) { *out << broken.info.name; }

std::vector<BrokenTask> broken_tasks() {
  return {
      {with_fault("counts_calls", Fault::counts_calls), {"determinism", "threads"}},
      {with_fault("thread_dependent", Fault::thread_dependent), {"threads"}},
      {with_fault("id_out_of_range", Fault::id_out_of_range), {"examples"}},
      {with_fault("too_long", Fault::too_long), {"examples"}},
      {with_fault("label_off", Fault::label_off), {"examples"}},
      {with_fault("no_label", Fault::no_label), {"examples"}},
      {with_fault("evidence_outside", Fault::evidence_outside), {"examples"}},
      {with_fault("distance_too_long", Fault::distance_too_long), {"distances"}},
      {with_fault("distance_negative", Fault::distance_negative), {"distances"}},
      {with_fault("same_in_all_splits", Fault::same_in_all_splits), {"splits"}},
      {with_fault("one_class", Fault::one_class), {"balance"}},
      {with_fault("chance_too_high", Fault::chance_too_high), {"chance", "shortcuts"}},
      {with_fault("shortcut_above_one", Fault::shortcut_above_one), {"shortcuts"}},
      {with_fault("one_number", Fault::one_class, Answer::number), {"balance", "chance"}},
      {with_fault("one_sequence", Fault::one_class, Answer::sequence), {"balance"}},
      {with_fault("number_chance_too_high", Fault::chance_too_high, Answer::number), {"chance"}},
      {with_fault("number_chance_too_low", Fault::chance_too_low, Answer::number),
       {"chance", "shortcuts"}},
      {with_fault("sequence_chance_too_high", Fault::chance_too_high, Answer::sequence),
       {"chance", "shortcuts"}},
      {with_fault("number_distance", Fault::distance_too_long, Answer::number), {"distances"}},
      {with_fault("number_of_threads", Fault::thread_dependent, Answer::number), {"threads"}},
      {with_fault("edges_of_threads", Fault::thread_dependent, Answer::label_and_edges),
       {"threads"}},
  };
}

}  // namespace attn
