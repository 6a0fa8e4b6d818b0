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
#include <vector>

#include "core/params.h"

namespace attn {

enum class Split { train, validation, test };
std::string_view to_string(Split split);  // "train", "validation", "test"

inline constexpr int32_t kIgnoredLabel = -1;  // a position that is not scored
inline constexpr int32_t kPadToken = 0;  // token tasks: every id 0 is padding, and only at the end

// One example. Exactly one of `tokens` and `values` is filled, with `length` entries at most
// (shorter: padded by the caller).
struct Example {
  std::vector<int32_t> tokens{};  // ids in [1, vocab); 0 is padding
  std::vector<float> values{};    // real inputs, one channel
  std::vector<int32_t>
      target{};  // one class, or one class per position with kIgnoredLabel elsewhere
  std::vector<int32_t>
      evidence{};  // positions that determine the label (sorted); which, is in the task's datasheet
  std::map<std::string, double> slices{};  // numbers to group the accuracy by, such as {"depth": 3}
};

// A score that needs no attention, measured on the test split; the value `lift` is counted from the
// best one.
struct Shortcut {
  std::string name;
  double score = 0;
};

// What a model must provide to be trained on a task. Fixed by the parameters.
struct TaskShape {
  int64_t length = 0;  // longest sequence
  int64_t vocab = 0;   // token ids are in [0, vocab); 0 when inputs are `values`
  int64_t classes = 0;
  bool per_token =
      false;  // a label per position (target.size() == length) instead of one per sequence
  bool causal = false;  // the model must not look ahead
};

class Task {
 public:
  virtual ~Task() = default;
  // The same bits for the same (seed, split, index) on every platform. Thread-safe.
  Example example(uint64_t seed, Split split, int64_t index) const;
  TaskShape shape() const { return do_shape(); }
  int64_t train_examples() const {
    return params_.integer("train_examples");
  }  // finite, repeated over epochs
  const Params& params() const { return params_; }
  double chance() const { return do_chance(); }  // expected score of a uniform random guess
  // Majority class first, then what the task's structure offers; fitted on the first `train_count`
  // training examples (at most train_examples), scored on the first `test_count` of the test split.
  // All examples are held in memory meanwhile.
  std::vector<Shortcut> shortcuts(uint64_t seed, int64_t train_count, int64_t test_count) const;
  std::string draw(const Example& example) const { return do_draw(example); }  // for a terminal

 protected:
  explicit Task(Params params) : params_(std::move(params)) {}

 private:
  virtual Example do_example(uint64_t seed, Split split, int64_t index) const = 0;
  virtual TaskShape do_shape() const = 0;
  virtual double do_chance() const = 0;
  virtual std::vector<Shortcut> do_shortcuts(const std::vector<Example>& train,
                                             const std::vector<Example>& test) const = 0;
  virtual std::string do_draw(const Example& example) const = 0;

  Params params_;
};

struct TaskInfo {
  std::string name;       // the file's stem
  std::string summary;    // one line
  std::string source;     // paper and equation or section
  std::string datasheet;  // a few lines: definition, labels, what `evidence` and `slices` mean
  std::string metric = "accuracy";
  std::vector<ParamSpec> params;  // every task has `train_examples`
  std::function<std::unique_ptr<Task>(const Params&)> make;

  // Resolves parameters, then makes. The one way in which the harness builds a task.
  std::unique_ptr<Task> build(const std::map<std::string, ParamValue>& given = {}) const;
};

template <class T>
std::unique_ptr<Task> make_task(const Params& params) {
  return std::make_unique<T>(params);
}

}  // namespace attn
