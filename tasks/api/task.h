// The interface of a task: seeded examples with labels, what chance and cheap shortcuts score, and
// how it is drawn. One task is one <name>.cc that exports `TaskInfo <name>();`; tasks/catalog.cc
// lists them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/params.h"
#include "core/base/rng.h"

namespace attn {

enum class Split { train, validation, test };
std::string_view to_string(Split split);  // "train", "validation", "test"

inline constexpr int32_t kIgnoredLabel = -1;  // a position that is not scored
inline constexpr int32_t kPadToken = 0;  // token tasks: every id 0 is padding, and only at the end

// One example. Exactly one of `tokens` and `values` is filled, with `length` positions at most
// (shorter: padded by the caller).
struct Example {
  std::vector<int32_t> tokens{};  // ids in [1, vocab); 0 is padding
  std::vector<float> values{};    // real inputs, `channels` numbers a position
  std::vector<int32_t> second{};  // a pair's second document, like `tokens`; else empty
  // One class; or one class per position with kIgnoredLabel elsewhere; or the output sequence
  // without start and end (TaskShape::outputs); or nothing (TaskShape::real).
  std::vector<int32_t> target{};
  std::vector<float> wanted{};  // the number to be predicted, where TaskShape::real; else empty
  // Position first may see position second, where TaskShape::edges; sorted, each once.
  std::vector<std::pair<int32_t, int32_t>> edges{};
  // Positions that determine the label (sorted); which, is in the task's datasheet. Position p of a
  // pair's second document is length + p. Empty when unknown, as in data that was read.
  std::vector<int32_t> evidence{};
  // How many positions what a scored label depends on lies apart: one number, or one a label per
  // position, -1 where not scored. Left empty by a task: from the first evidence to the last (of
  // one document), for a label per position to that position.
  std::vector<int32_t> distances{};
  std::map<std::string, double> slices{};  // numbers to group the accuracy by, such as {"depth": 3}
};

// A score that needs no attention, by the task's metric on the test split; the value `lift` is
// counted from the best one (of an error: the least).
struct Shortcut {
  std::string name;
  double score = 0;
};

// What a model must provide to be trained on a task. Fixed by the parameters.
struct TaskShape {
  int64_t length = 0;  // longest sequence; of a pair: longest document
  int64_t vocab = 0;   // token ids are in [0, vocab); 0 when inputs are `values`
  int64_t classes = 0;
  bool per_token =
      false;  // a label per position (target.size() == length) instead of one per sequence
  bool causal = false;   // the model must not look ahead
  bool pairs = false;    // two documents an example, each encoded on its own
  int64_t channels = 1;  // numbers a position, of `values`
  // > 0: the answer is a sequence of 1 to `outputs` tokens of [0, classes) whose end the model
  // decides; scored by exact match.
  int64_t outputs = 0;
  bool real = false;        // the answer is one number, scored by mean squared error; classes is 1
  bool edges = false;       // who may see whom is part of the example
  bool compressed = false;  // per_token, but read from the last position's vector alone
};

// Positions of an example's only or first document.
int64_t positions(const Example& example, const TaskShape& shape);

// Examples read from files instead of generated; see tasks/data.
class Source {
 public:
  virtual ~Source() = default;
  virtual int64_t count(Split split) const = 0;                   // at least 1
  virtual Example example(Split split, int64_t index) const = 0;  // index < count; thread-safe
  virtual std::string fingerprint() const = 0;  // of the contents, 16 hexadecimal digits
  virtual int64_t duplicates() const = 0;       // inputs left out, since another split has them too
};

class Task {
 public:
  virtual ~Task() = default;
  // The same bits for the same (seed, split, index) on every platform. Thread-safe. The splits are
  // disjoint: an input belongs to the one split that its checksum names (half of all inputs to
  // train, a quarter each to validation and test), and draws that belong elsewhere are drawn again.
  Example example(uint64_t seed, Split split, int64_t index) const;
  // The first draw, whichever split it belongs to: shows how often splits would share an input.
  Example any_example(uint64_t seed, Split split, int64_t index) const;
  TaskShape shape() const { return do_shape(); }
  int64_t train_examples() const { return count(Split::train); }  // finite, repeated over epochs
  int64_t count(Split split) const;  // validation and test: without end, unless read from files
  const Params& params() const { return params_; }
  const Source* source() const { return do_source(); }  // null: generated
  // Expected score of a uniform random guess; where TaskShape::real, of the best constant.
  double chance() const { return do_chance(); }
  // The ladder of shortcuts/ladder.h, which starts with the best constant, then what the task's
  // structure offers; fitted on the first `train_count` training examples (at most train_examples),
  // scored on the first `test_count` of the test split. All examples are held in memory meanwhile.
  std::vector<Shortcut> shortcuts(uint64_t seed, int64_t train_count, int64_t test_count) const;
  std::string draw(const Example& example) const { return do_draw(example); }  // for a terminal
  // Pixels a row when the example is a picture, else 0, and its grey levels 0..255 by rows.
  int64_t picture_width() const { return do_picture_width(); }
  std::vector<uint8_t> picture(const Example& example) const { return do_picture(example); }

 protected:
  explicit Task(Params params) : params_(std::move(params)) {}

 private:
  virtual Example do_example(Rng& random) const = 0;
  virtual TaskShape do_shape() const = 0;
  // Where outputs or real, a task says it itself.
  virtual double do_chance() const { return 1.0 / static_cast<double>(do_shape().classes); }
  virtual std::vector<Shortcut> do_shortcuts(const std::vector<Example>& train,
                                             const std::vector<Example>& test) const = 0;
  virtual std::string do_draw(const Example& example) const = 0;
  virtual const Source* do_source() const { return nullptr; }
  virtual int64_t do_picture_width() const { return 0; }
  virtual std::vector<uint8_t> do_picture(const Example&) const { return {}; }

  Example finished(Example example) const;  // checked, with its distances

  Params params_;
};

// FNV-1a over an example's inputs, mixed: what names its split, and what duplicates share.
uint64_t input_checksum(const Example& example);

struct ReleasedFormat;  // see tasks/data/released.h

// A named level of a task: values for some of its parameters, for the others the defaults stay.
struct Preset {
  std::string name;  // "lra": the sizes of Long Range Arena
  std::string help;
  std::map<std::string, ParamValue> values;
};

// Whether less is better: a mean squared error, not a share of right answers.
inline bool is_error(std::string_view metric) { return metric == "mean_squared_error"; }

struct TaskInfo {
  std::string name;       // the file's stem
  std::string summary;    // one line
  std::string source;     // paper and equation or section
  std::string datasheet;  // a few lines: definition, labels, what `evidence` and `slices` mean
  // "accuracy"; "exact_match" of output sequences; "mean_squared_error" of real answers.
  std::string metric = "accuracy";
  // Of a control, which a shortcut solves: what solves it. Its lift says nothing of attention, so
  // none is given. Empty of every other task.
  std::string control{};
  std::vector<ParamSpec> params;  // every task has `train_examples`
  // Chosen by `preset=NAME`; other parameters given win over it. A level named "standard" is what a
  // spec without `preset` means.
  std::vector<Preset> presets{};
  std::function<std::unique_ptr<Task>(const Params&)> make;
  const ReleasedFormat* released = nullptr;  // how examples are written as LRA's data; null: none

  // `params`, and `preset` where there are any: what a spec may name.
  std::vector<ParamSpec> accepted() const;
  // The level of a spec that names none: "standard" where the task has it; "", the defaults of
  // `params`, where `given` names released data, whose sizes these are.
  std::string default_preset(const std::map<std::string, ParamValue>& given = {}) const;
  // `params` with the values that a spec without parameters gets, for listings.
  std::vector<ParamSpec> params_by_default() const;
  // Defaults, overlaid with the preset's values (default_preset() where `given` names no `preset`),
  // overlaid with `given`; "preset" is gone.
  Params resolve(const std::map<std::string, ParamValue>& given = {}) const;
  // Resolves, then makes. The one way in which the harness builds a task.
  std::unique_ptr<Task> build(const std::map<std::string, ParamValue>& given = {}) const;
};

template <class T>
std::unique_ptr<Task> make_task(const Params& params) {
  return std::make_unique<T>(params);
}

}  // namespace attn
