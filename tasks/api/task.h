// The interface of a task: seeded examples with labels, the scores of chance and of shortcuts, and
// a text drawing of an example. One task is one <name>.cc that exports `TaskInfo <name>();`.
// tasks/CMakeLists.txt lists the tasks.
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

inline constexpr int32_t kIgnoredLabel = -1;  // a position without a label
inline constexpr int32_t kPadToken = 0;       // of token tasks; padding stands only at the end

// One example. Exactly one of `tokens` and `values` is filled, with at most `length` positions. The
// caller pads shorter examples.
struct Example {
  std::vector<int32_t> tokens{};  // ids in [1, vocab); 0 is padding
  std::vector<float> values{};    // real inputs, `channels` numbers per position
  std::vector<int32_t> second{};  // the second document of a pair, like `tokens`; else empty
  // One class; or one class per position, kIgnoredLabel where there is no label; or the output
  // sequence without start and end tokens (TaskShape::outputs); or empty (TaskShape::real).
  std::vector<int32_t> target{};
  std::vector<float> wanted{};  // the number to predict if TaskShape::real; else empty
  // Edge (i, j): position i may attend to position j. Sorted, without repetition; only if
  // TaskShape::edges.
  std::vector<std::pair<int32_t, int32_t>> edges{};
  // Sorted positions that determine the label; the task's datasheet defines them. Position p of the
  // second document of a pair is `length` + p. Empty when unknown, as for examples from files.
  std::vector<int32_t> evidence{};
  // The number of positions that each dependency spans: one number, or one per position, -1 where
  // there is no label. If a task leaves the list empty, a distance is the span of the evidence of
  // one document; for a label per position, the span of the evidence and that position. If
  // TaskShape::bits, a task gives the number of positions before the label's own.
  std::vector<int32_t> distances{};
  std::map<std::string, double> slices{};  // numbers to group the accuracy by, such as {"depth": 3}
  // The same for groups in which the labels of one example differ, such as {"repeats": [0, 1, -1]}:
  // a number for each position, -1 where there is no label. Only if TaskShape::per_token.
  std::map<std::string, std::vector<int32_t>> label_slices{};
};

// The score of a predictor without attention on the test split, in the metric of the task. The
// `lift` of a model is its score less the score of the best shortcut; for errors, the least
// shortcut error less the error of the model.
struct Shortcut {
  std::string name;
  double score = 0;
};

// The sizes and the kind of a task's inputs and answers. The parameters of the task determine them.
struct TaskShape {
  int64_t length = 0;  // of the longest sequence; for pairs, of the longest document
  int64_t vocab = 0;   // token ids are in [0, vocab); 0 if inputs are `values`
  int64_t classes = 0;
  bool per_token =
      false;  // a label per position (target.size() == length) instead of one per sequence
  bool causal = false;   // the model must be causal
  bool pairs = false;    // an example is two documents; the model encodes each separately
  int64_t channels = 1;  // numbers of `values` per position
  // > 0: the answer is a sequence of 1 to `outputs` tokens in [0, classes), scored by exact match.
  // The model decides where the sequence ends.
  int64_t outputs = 0;
  bool real = false;        // the answer is one number, scored by mean squared error; classes is 1
  bool edges = false;       // examples have edges
  bool compressed = false;  // per_token, and all labels are read from the last position's vector
  // per_token, and the score is the mean number of bits of a label, -log2 of the probability that
  // the model gives it: for labels that nothing before them determines, as in language.
  bool bits = false;
};

// The score of a guess that takes every class for equally likely.
double guessing(const TaskShape& shape);

// The number of positions of the only or first document of an example.
int64_t positions(const Example& example, const TaskShape& shape);

// The positions 0 .. count - 1, for an example whose evidence is every position.
std::vector<int32_t> first_positions(size_t count);

// Examples that are read from files instead of generated; see tasks/data.
class Source {
 public:
  virtual ~Source() = default;
  virtual int64_t count(Split split) const = 0;                   // at least 1
  virtual Example example(Split split, int64_t index) const = 0;  // index < count; thread-safe
  virtual std::string fingerprint() const = 0;  // of the contents, 16 hexadecimal digits
  virtual int64_t duplicates() const = 0;  // examples left out because another split has the input
};

class Task {
 public:
  virtual ~Task() = default;
  // The example of (seed, split, index), with the same bits on every platform. Thread-safe. The
  // splits are disjoint: the checksum of an input selects its split (half of all inputs are train,
  // a quarter each validation and test). A draw that belongs to another split is rejected and drawn
  // again.
  Example example(uint64_t seed, Split split, int64_t index) const;
  // The first draw, without rejection. It shows how often splits would share an input.
  Example any_example(uint64_t seed, Split split, int64_t index) const;
  TaskShape shape() const { return do_shape(); }
  int64_t train_examples() const { return count(Split::train); }  // repeated in every epoch
  // The number of examples. Generated validation and test splits have no limit.
  int64_t count(Split split) const;
  const Params& params() const { return params_; }
  const Source* source() const { return do_source(); }  // null if the examples are generated
  // Expected score of a uniform random guess; if TaskShape::real, the error of the best constant;
  // if TaskShape::bits, those of one class among all.
  double chance() const { return do_chance(); }
  // The shortcuts of shortcuts/ladder.h, of which the best constant is the first, then the task's
  // own. Fitted on the first `train_count` training examples (at most train_examples), scored on
  // the first `test_count` test examples. Holds all of these examples in memory.
  std::vector<Shortcut> shortcuts(uint64_t seed, int64_t train_count, int64_t test_count) const;
  std::string draw(const Example& example) const { return do_draw(example); }  // as text
  // For examples that are pictures: pixels per row (else 0), and grey levels 0..255 by rows.
  int64_t picture_width() const { return do_picture_width(); }
  std::vector<uint8_t> picture(const Example& example) const { return do_picture(example); }

 protected:
  explicit Task(Params params) : params_(std::move(params)) {}

 private:
  virtual Example do_example(Rng& random) const = 0;
  virtual TaskShape do_shape() const = 0;
  // A task with `outputs` or `real` must override this.
  virtual double do_chance() const { return guessing(do_shape()); }
  virtual std::vector<Shortcut> do_shortcuts(const std::vector<Example>& train,
                                             const std::vector<Example>& test) const = 0;
  virtual std::string do_draw(const Example& example) const = 0;
  virtual const Source* do_source() const { return nullptr; }
  virtual int64_t do_picture_width() const { return 0; }
  virtual std::vector<uint8_t> do_picture(const Example&) const { return {}; }

  Example finished(Example example) const;  // checks the example and fills in its distances

  Params params_;
};

// FNV-1a hash of the inputs of an example, with mixed bits. It selects the split of a generated
// example and identifies duplicates.
uint64_t input_checksum(const Example& example);

struct ReleasedFormat;  // see tasks/data/released.h

// A named setting of a task: values of some parameters. The other parameters keep their defaults.
struct Preset {
  std::string name;  // "lra": the sizes of Long Range Arena
  std::string help;
  std::map<std::string, ParamValue> values;
};

// Whether a smaller score is better: true for the mean squared error and for bits.
inline bool is_error(std::string_view metric) {
  return metric == "mean_squared_error" || metric == "bits_per_token";
}
inline bool is_error(const TaskShape& shape) { return shape.real || shape.bits; }

struct TaskInfo {
  std::string name;       // the file's stem
  std::string summary;    // one line
  std::string source;     // paper and equation or section
  std::string datasheet;  // a few lines: definition, labels, meaning of `evidence` and all slices
  // "accuracy"; "exact_match" for output sequences; "mean_squared_error" for real answers;
  // "bits_per_token" if TaskShape::bits.
  std::string metric = "accuracy";
  // The shortcut that solves the task, if the task is a control; else empty. Controls have no lift,
  // because they do not need attention.
  std::string control{};
  // The variant that must learn a setting for its scores to be shown, where exact attention cannot
  // solve the task; else empty.
  std::string solver{};
  std::vector<ParamSpec> params;  // every task has `train_examples`
  // `preset=NAME` selects one; parameters given beside `preset` override its values. A spec without
  // `preset` means the preset "standard", if there is one.
  std::vector<Preset> presets{};
  std::function<std::unique_ptr<Task>(const Params&)> make;
  const ReleasedFormat* released = nullptr;  // writes examples in LRA's format; null: no format

  // The parameters that a spec may name: `params`, and `preset` if there are presets.
  std::vector<ParamSpec> accepted() const;
  // The preset of a spec that names none: "standard" if the task has it. If `given` names released
  // data, "": the defaults of `params`, which are the sizes of the released data.
  std::string default_preset(const std::map<std::string, ParamValue>& given = {}) const;
  // `params` with the values of a spec without parameters, for listings.
  std::vector<ParamSpec> params_by_default() const;
  // The defaults, overridden by the values of the preset (default_preset() if `given` names no
  // `preset`), overridden by `given`. The result has no entry "preset".
  Params resolve(const std::map<std::string, ParamValue>& given = {}) const;
  // Resolves the parameters and makes the task. The harness builds tasks only with this function.
  std::unique_ptr<Task> build(const std::map<std::string, ParamValue>& given = {}) const;
};

template <class T>
std::unique_ptr<Task> make_task(const Params& params) {
  return std::make_unique<T>(params);
}

}  // namespace attn
