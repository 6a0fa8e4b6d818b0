// One class with one deliberate fault; see planted.h.
#include "tests/conformance/planted.h"

#include <atomic>
#include <limits>
#include <ostream>

#include "core/base/parallel.h"
#include "core/base/rng.h"
#include "tests/tasks/stored.h"

namespace attn {
namespace {

enum class Fault {
  none,
  none_read,  // and from a source of a few examples
  // Which example comes
  counts_calls,
  follows_the_last,
  differs_by_object,
  thread_dependent,
  few_inputs,
  same_in_all_splits,
  validation_is_training,
  sorted_by_class,
  // What is in it
  id_out_of_range,
  pad_inside,
  nan_value,
  ragged_values,
  too_long,
  edge_outside,
  label_off,
  no_label,
  nan_answer,
  answer_too_long,
  nothing_scored,
  scored_padding,
  one_class,
  slices_of_some,
  label_slices_of_some,
  label_slice_too_short,
  label_slices_of_calls,
  torn_picture,
  draws_nothing,
  // What it says of its label
  random_label,
  evidence_outside,
  evidence_elsewhere,
  evidence_too_narrow,
  evidence_of_some,
  evidence_in_the_first,
  distance_too_long,
  distance_negative,
  distance_beyond_evidence,
  looks_ahead,
  // What the task says of itself
  wrong_metric,
  bits_of_a_sequence,
  bits_by_accuracy,
  compressed_whole,
  shape_of_calls,
  chance_too_high,
  chance_too_low,
  chance_of_three,
  preset_ignored,
  preset_refused,
  label_in_the_input,
  control_of_nothing,
  shortcut_above_one,
  shortcut_twice,
  shortcut_of_calls
};

enum class Answer { label, number, sequence, label_and_edges, values, pair, labels, bits };

constexpr int64_t kLength = 12, kVocab = 17, kClasses = 4, kStored = 20, kChannels = 2;
constexpr size_t kOther = 7;  // the label is that of the first token and this one

std::atomic<int> tasks_made = 0;

class TinyTask final : public Task {
 public:
  TinyTask(const Params& params, Fault fault, Answer answer)
      : Task(params),
        fault_(fault),
        answer_(answer),
        number_(tasks_made++),
        source_([this](Split split, int64_t index) { return stored(split, index); }, kStored) {}

 private:
  const Source* do_source() const override {
    const bool read = fault_ == Fault::same_in_all_splits || fault_ == Fault::none_read ||
                      fault_ == Fault::validation_is_training || fault_ == Fault::sorted_by_class;
    return read ? &source_ : nullptr;
  }
  Example stored(Split split, int64_t index) const {
    if (fault_ == Fault::validation_is_training && split == Split::validation) split = Split::train;
    const bool same = fault_ == Fault::same_in_all_splits;
    Rng random = rng(same ? 0 : static_cast<uint64_t>(split), "tiny", static_cast<uint64_t>(index));
    Example example = do_example(random);
    while (fault_ == Fault::sorted_by_class && split == Split::train && example.target[0] > 0)
      example = do_example(random);
    return example;
  }
  Example do_example(Rng& random) const override {
    Rng few = rng(0, "few", random.below(150));
    Example example = input(fault_ == Fault::few_inputs ? few : random);
    answer(example, random);
    explain(example);
    return example;
  }
  Example input(Rng& random) const {
    Example example;
    for (int64_t i = 0; i < kLength; i++)
      example.tokens.push_back(static_cast<int32_t>(random.between(1, kVocab - 1)));
    const auto next = [&](size_t at) {
      example.tokens[at] = example.tokens[at] % (kVocab - 1) + 1;
    };
    if (fault_ == Fault::thread_dependent && threads() == 2 && answer_ == Answer::label) next(1);
    if (fault_ == Fault::differs_by_object)
      example.tokens[2] = static_cast<int32_t>((example.tokens[2] + number_) % (kVocab - 1) + 1);
    if (fault_ == Fault::follows_the_last) example.tokens[1] = last_.exchange(example.tokens[2]);
    if (fault_ == Fault::id_out_of_range && random.below(6) == 0) example.tokens[3] = kVocab;
    if (fault_ == Fault::pad_inside && random.below(6) == 0) example.tokens[3] = kPadToken;
    if (fault_ == Fault::too_long) example.tokens.push_back(1);
    if (fault_ == Fault::scored_padding) example.tokens.resize(kLength - 2);
    if (answer_ == Answer::pair) example.second = example.tokens;
    if (answer_ == Answer::pair) example.tokens.assign(random.below(2) + 8, 3);
    return example;
  }
  static int32_t sum(const std::vector<int32_t>& tokens, size_t a, size_t b) {
    return (tokens[a % tokens.size()] + tokens[b % tokens.size()]) % kClasses;
  }
  void answer(Example& example, Rng& random) const {
    int32_t label = sum(answer_ == Answer::pair ? example.second : example.tokens, 0, kOther);
    if (fault_ == Fault::random_label) label = static_cast<int32_t>(random.below(kClasses));
    if (fault_ == Fault::label_off) label++;
    if (fault_ == Fault::one_class) label = 0;
    if (fault_ != Fault::no_label) example.target = {label};
    if (fault_ == Fault::label_in_the_input) example.tokens.back() = label + 1;
    const bool other_thread = fault_ == Fault::thread_dependent && threads() == 2;
    switch (answer_) {
      case Answer::number: {
        example.target.clear();
        const auto number = static_cast<float>(fault_ == Fault::one_class ? 1 : example.tokens[0]);
        example.wanted = {other_thread ? number + 1 : number};
        if (fault_ == Fault::nan_answer) example.wanted = {std::numeric_limits<float>::quiet_NaN()};
        break;
      }
      case Answer::sequence:
        example.target.push_back(fault_ == Fault::one_class ? 0 : example.tokens[1] % kClasses);
        if (fault_ == Fault::answer_too_long) example.target.push_back(0);
        break;
      case Answer::label_and_edges:
        for (int32_t i = 0; i < kLength; i++) example.edges.emplace_back(i, i);
        if (other_thread) example.edges.pop_back();
        if (fault_ == Fault::edge_outside) example.edges.emplace_back(kLength - 1, kLength);
        break;
      case Answer::values:
        for (const int32_t token : example.tokens)
          for (int64_t c = 0; c < kChannels; c++)
            example.values.push_back(static_cast<float>(token) / (1 + static_cast<float>(c)));
        example.tokens.clear();
        if (fault_ == Fault::nan_value) example.values[5] = std::numeric_limits<float>::quiet_NaN();
        if (fault_ == Fault::ragged_values) example.values.pop_back();
        break;
      case Answer::labels:
      case Answer::bits:
        label_positions(example);
        break;
      default:
        break;
    }
  }
  void label_positions(Example& example) const {
    example.target.clear();
    for (size_t i = 0; i < kLength; i++) {
      const bool ahead = fault_ == Fault::looks_ahead,
                 ignored = fault_ == Fault::nothing_scored || (ahead && i + 2 >= kLength);
      example.target.push_back(ignored ? kIgnoredLabel
                               : ahead ? sum(example.tokens, i + 1, i + 2)
                                       : sum(example.tokens, i, i + 5));
    }
  }
  void explain(Example& example) const {
    const auto other = static_cast<int32_t>(kOther), length = static_cast<int32_t>(kLength);
    example.evidence = {0, other};
    if (answer_ == Answer::sequence) example.evidence = {0, 1, other};
    if (answer_ == Answer::labels || answer_ == Answer::bits)
      example.evidence = first_positions(example.tokens.size());
    if (answer_ == Answer::pair && fault_ != Fault::evidence_in_the_first)
      example.evidence = {length, length + other};
    if (fault_ == Fault::evidence_outside) example.evidence = {0, length};
    if (fault_ == Fault::evidence_elsewhere) example.evidence = {2, 9};
    if (fault_ == Fault::evidence_too_narrow) example.evidence = {0};
    if (fault_ == Fault::evidence_of_some && example.tokens[4] % 3 == 0) example.evidence = {};
    if (fault_ == Fault::distance_too_long) example.distances = {length};
    if (fault_ == Fault::distance_negative) example.distances = {-1};
    if (fault_ == Fault::distance_beyond_evidence) example.distances = {other + 1};
    example.slices = {{"first", example.tokens.empty() ? 0 : example.tokens[0]}};
    if (fault_ == Fault::counts_calls && threads() == 1) example.slices["first"] += calls_++ % 2;
    if (fault_ == Fault::slices_of_some && example.tokens[4] % 3 == 0) example.slices.clear();
    if (answer_ == Answer::labels) slice_labels(example);
  }
  void slice_labels(Example& example) const {
    std::vector<int32_t>& late = example.label_slices["late"];
    for (size_t i = 0; i < example.target.size(); i++)
      late.push_back(example.target[i] == kIgnoredLabel ? -1 : i >= kLength / 2);
    if (fault_ == Fault::label_slice_too_short) late.pop_back();
    if (fault_ == Fault::label_slices_of_calls && threads() == 1) late[3] += calls_++ % 2;
    if (fault_ == Fault::label_slices_of_some && example.tokens[4] % 3 == 0)
      example.label_slices.clear();
  }
  TaskShape do_shape() const override {
    const bool changes = fault_ == Fault::shape_of_calls && number_ % 2;
    const bool values = answer_ == Answer::values;
    return {.length = kLength + (changes ? 1 : 0),
            .vocab = values ? 0 : kVocab,
            .classes = answer_ == Answer::number ? 1 : kClasses,
            .per_token = answer_ == Answer::labels || answer_ == Answer::bits,
            .causal = fault_ == Fault::looks_ahead,
            .pairs = answer_ == Answer::pair,
            .channels = values ? kChannels : 1,
            .outputs = answer_ == Answer::sequence ? 2 : 0,
            .real = answer_ == Answer::number,
            .edges = answer_ == Answer::label_and_edges,
            .compressed = fault_ == Fault::compressed_whole,
            .bits = answer_ == Answer::bits || fault_ == Fault::bits_of_a_sequence};
  }
  double do_chance() const override {
    if (fault_ == Fault::chance_too_high) return answer_ == Answer::number ? 90 : 0.9;
    if (fault_ == Fault::chance_too_low) return 0.01;
    if (fault_ == Fault::chance_of_three) return 1.0 / (kClasses - 1);
    if (answer_ == Answer::sequence) return 1.0 / (kClasses * kClasses);
    if (answer_ == Answer::bits) return fault_ == Fault::chance_of_three ? 1.58 : 2;  // log2 of 4
    constexpr int64_t kTokens = kVocab - 1;  // 1 to 16, whose variance this is
    return answer_ == Answer::number ? static_cast<double>(kTokens * kTokens - 1) / 12 : 0.25;
  }
  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>&) const override {
    const double calls = fault_ == Fault::shortcut_of_calls ? calls_++ : 0;
    const double score = answer_ == Answer::number             ? 25
                         : answer_ == Answer::bits             ? 1.9
                         : fault_ == Fault::shortcut_above_one ? 1.5
                                                               : 0.26;
    return {{fault_ == Fault::shortcut_twice ? "majority" : "a guess", score + 0.01 * calls}};
  }
  std::string do_draw(const Example&) const override {
    return fault_ == Fault::draws_nothing ? "" : "tiny";
  }
  int64_t do_picture_width() const override { return fault_ == Fault::torn_picture ? 5 : 0; }
  std::vector<uint8_t> do_picture(const Example&) const override {
    return std::vector<uint8_t>(fault_ == Fault::torn_picture ? kLength : 0);
  }

  Fault fault_;
  Answer answer_;
  int number_;  // of the task, in the order in which they are made
  Stored source_;
  mutable std::atomic<int> calls_ = 0;
  mutable std::atomic<int32_t> last_ = 1;
};

TaskInfo with_fault(const std::string& name, Fault fault, Answer answer = Answer::label) {
  TaskInfo info;
  info.name = name;
  info.params = {{"train_examples", 100, "size of the training set"}};
  if (answer == Answer::number) info.metric = "mean_squared_error";
  if (answer == Answer::sequence) info.metric = "exact_match";
  if (answer == Answer::bits && fault != Fault::bits_by_accuracy) info.metric = "bits_per_token";
  if (fault == Fault::wrong_metric) info.metric = "mean_squared_error";
  if (fault == Fault::control_of_nothing) info.control = "the first token";
  if (fault == Fault::preset_ignored) {
    info.params.emplace_back("length", kLength, "tokens");
    info.presets = {{"short", "as it is", {{"length", kLength}}},
                    {"long", "never made", {{"length", 2 * kLength}}}};
  }
  if (fault == Fault::preset_refused) info.presets = {{"deep", "unknown", {{"depth", 3}}}};
  info.make = [fault, answer](const Params& params) {
    return std::make_unique<TinyTask>(params, fault, answer);
  };
  return info;
}

}  // namespace

TaskInfo tiny_task() { return with_fault("tiny", Fault::none); }
TaskInfo tiny_read_task() { return with_fault("tiny_read", Fault::none_read); }
std::vector<TaskInfo> tiny_tasks_of_each_answer() {
  return {with_fault("tiny_number", Fault::none, Answer::number),
          with_fault("tiny_sequence", Fault::none, Answer::sequence),
          with_fault("tiny_edges", Fault::none, Answer::label_and_edges),
          with_fault("tiny_values", Fault::none, Answer::values),
          with_fault("tiny_pair", Fault::none, Answer::pair),
          with_fault("tiny_labels", Fault::none, Answer::labels),
          with_fault("tiny_bits", Fault::none, Answer::bits)};
}

void PrintTo(const BrokenTask& broken, std::ostream* out) { *out << broken.info.name; }

std::vector<BrokenTask> broken_tasks() {
  std::vector<BrokenTask> list;
  const auto add = [&](const std::string& name, Fault fault, const std::vector<std::string>& red,
                       Answer answer = Answer::label) {
    list.push_back({with_fault(name, fault, answer), red});
  };
  add("counts_calls", Fault::counts_calls, {"determinism", "threads"});
  add("follows_the_last", Fault::follows_the_last, {"determinism", "threads"});
  add("differs_by_object", Fault::differs_by_object, {"determinism"});
  add("thread_dependent", Fault::thread_dependent, {"threads"});
  add("number_of_threads", Fault::thread_dependent, {"threads"}, Answer::number);
  add("edges_of_threads", Fault::thread_dependent, {"threads"}, Answer::label_and_edges);
  add("few_inputs", Fault::few_inputs, {"splits"});
  add("same_in_all_splits", Fault::same_in_all_splits, {"splits", "shortcuts"});
  add("validation_is_training", Fault::validation_is_training, {"splits"});
  add("sorted_by_class", Fault::sorted_by_class, {"balance"});

  add("id_out_of_range", Fault::id_out_of_range, {"examples"});
  add("pad_inside", Fault::pad_inside, {"examples"});
  add("nan_value", Fault::nan_value, {"examples"}, Answer::values);
  add("ragged_values", Fault::ragged_values, {"examples"}, Answer::values);
  add("too_long", Fault::too_long, {"examples"});
  add("second_too_long", Fault::too_long, {"examples"}, Answer::pair);
  add("edge_outside", Fault::edge_outside, {"examples"}, Answer::label_and_edges);
  add("label_off", Fault::label_off, {"examples"});
  add("no_label", Fault::no_label, {"examples"});
  add("nan_answer", Fault::nan_answer, {"examples"}, Answer::number);
  add("answer_too_long", Fault::answer_too_long, {"examples"}, Answer::sequence);
  add("nothing_scored", Fault::nothing_scored, {"examples"}, Answer::labels);
  add("scored_padding", Fault::scored_padding, {"examples"}, Answer::labels);
  add("slices_of_some", Fault::slices_of_some, {"examples"});
  add("label_slices_of_some", Fault::label_slices_of_some, {"examples"}, Answer::labels);
  add("label_slice_too_short", Fault::label_slice_too_short, {"examples"}, Answer::labels);
  add("label_slices_of_calls", Fault::label_slices_of_calls, {"determinism", "threads"},
      Answer::labels);
  add("torn_picture", Fault::torn_picture, {"examples"});
  add("draws_nothing", Fault::draws_nothing, {"examples"});
  add("one_class", Fault::one_class, {"balance"});
  add("one_number", Fault::one_class, {"balance", "chance"}, Answer::number);
  add("one_sequence", Fault::one_class, {"balance"}, Answer::sequence);

  add("random_label", Fault::random_label, {"evidence"});
  add("evidence_outside", Fault::evidence_outside, {"examples"});
  add("evidence_elsewhere", Fault::evidence_elsewhere, {"evidence"});
  add("evidence_too_narrow", Fault::evidence_too_narrow, {"evidence"});
  add("evidence_of_some", Fault::evidence_of_some, {"evidence"});
  add("evidence_in_the_first", Fault::evidence_in_the_first, {"evidence"}, Answer::pair);
  add("distance_too_long", Fault::distance_too_long, {"distances"});
  add("number_distance", Fault::distance_too_long, {"distances"}, Answer::number);
  add("distance_negative", Fault::distance_negative, {"distances"});
  add("distance_beyond_evidence", Fault::distance_beyond_evidence, {"distances"});
  add("looks_ahead", Fault::looks_ahead, {"distances"}, Answer::labels);

  add("wrong_metric", Fault::wrong_metric, {"shape"});
  add("bits_of_a_sequence", Fault::bits_of_a_sequence, {"shape", "chance", "shortcuts"});
  add("bits_by_accuracy", Fault::bits_by_accuracy, {"shape"}, Answer::bits);
  add("bits_chance_of_three", Fault::chance_of_three, {"chance", "shortcuts"}, Answer::bits);
  add("compressed_whole", Fault::compressed_whole, {"shape"});
  add("shape_of_calls", Fault::shape_of_calls, {"shape"});
  add("chance_too_high", Fault::chance_too_high, {"chance", "shortcuts"});
  add("number_chance_too_high", Fault::chance_too_high, {"chance"}, Answer::number);
  add("number_chance_too_low", Fault::chance_too_low, {"chance", "shortcuts"}, Answer::number);
  add("sequence_chance_too_high", Fault::chance_too_high, {"chance", "shortcuts"},
      Answer::sequence);
  add("chance_of_three", Fault::chance_of_three, {"chance"});
  add("preset_ignored", Fault::preset_ignored, {"presets"});
  add("preset_refused", Fault::preset_refused, {"presets"});
  add("label_in_the_input", Fault::label_in_the_input, {"shortcuts"});
  add("control_of_nothing", Fault::control_of_nothing, {"shortcuts"});
  add("shortcut_above_one", Fault::shortcut_above_one, {"shortcuts"});
  add("shortcut_twice", Fault::shortcut_twice, {"shortcuts"});
  add("shortcut_of_calls", Fault::shortcut_of_calls, {"shortcuts"});
  return list;
}

}  // namespace attn
