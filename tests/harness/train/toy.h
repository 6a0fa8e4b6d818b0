// A plain attention composed from ops, an averaging one with a weight of its own, and a task of
// eight tokens: what the tests of model and training run on, so that they need neither catalog.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/ops/ops.h"
#include "harness/model/encoder.h"
#include "tasks/api/task.h"
#include "tests/tasks/stored.h"
#include "variants/api/variant_info.h"

namespace attn::toy {

// 0 where query i of batch entry b sees key j, else -inf: [batch, heads, q_len, kv_len].
inline Tensor visible(const Shape& shape, const Mask& mask) {
  const Tensor bias(shape);
  const int64_t heads = shape[1], q_len = shape[2], kv_len = shape[3];
  for (int64_t at = 0; at < bias.size(); ++at) {
    const int64_t j = at % kv_len, i = at / kv_len % q_len, b = at / (kv_len * q_len * heads);
    const bool padded = !mask.kv_lengths.empty() && j >= mask.kv_lengths[static_cast<size_t>(b)];
    bias[at] = padded || (mask.causal && j > i + kv_len - q_len) ? -kInfinity : real(0);
  }
  return bias;
}

class Plain final : public Attention {
 public:
  explicit Plain(const AttentionConfig& config) : Attention(config) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    const Var logits =
        scale(matmul(q, k, false, true), 1 / std::sqrt(static_cast<double>(q.dim(3))));
    return matmul(softmax(add(logits, Var(visible(logits.shape(), mask)))), v);
  }
  Cost do_cost(const AttentionShape&) const override { return {}; }
};

// Looks at every key alike; scales each head's mean by a learned [head_dim] vector.
class Averaging final : public Attention {
 public:
  explicit Averaging(const AttentionConfig& config)
      : Attention(config), gain_(weight("gain", Tensor::full({config.head_dim}, 1))) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    const Var logits = scale(matmul(q, k, false, true), 0);
    return multiply(matmul(softmax(add(logits, Var(visible(logits.shape(), mask)))), v), gain_);
  }
  Cost do_cost(const AttentionShape&) const override { return {}; }

  Var gain_;
};

template <class T>
VariantInfo variant(std::string name, bool causal = true) {
  VariantInfo info;
  info.name = std::move(name);
  info.traits.causal = causal;
  info.make = make_as<T>;
  return info;
}

inline const VariantInfo& plain() {
  static const VariantInfo info = variant<Plain>("plain");
  return info;
}

// A model small enough for central differences of every weight.
inline ModelConfig tiny() {
  ModelConfig config;
  config.layer = {.variant = &plain(), .width = 4, .heads = 2, .feed_forward = 6};
  config.vocab = 7;
  config.length = 5;
  config.classes = 3;
  config.seed = 9;
  return config;
}

// What a toy task was asked for, in order.
struct Log {
  std::mutex mutex;
  std::vector<int64_t> asked[3];  // by split
  int64_t fail_at = -1;           // the training index that throws
};
inline Log& log() {
  static Log instance;
  return instance;
}

// Four to eight tokens of {1, .., 5}; the label says whether ones outnumber twos, or is a coin
// (`labels=random`).
class Counting final : public Task {
 public:
  explicit Counting(const Params& params)
      : Task(params),
        source_([this](Split split, int64_t index) { return stored(split, index); }) {}

 private:
  Example do_example(Rng&) const override { return {}; }
  const Source* do_source() const override { return &source_; }
  Example stored(Split split, int64_t index) const {
    {
      const std::lock_guard lock(log().mutex);
      log().asked[static_cast<int>(split)].push_back(index);
      ATTN_CHECK(split != Split::train || index != log().fail_at, "example {} is broken", index);
    }
    Rng stream =
        rng(0, fmt::format("toy {}", static_cast<int>(split)), static_cast<uint64_t>(index));
    Example example;
    example.tokens.resize(static_cast<size_t>(stream.between(4, 8)));
    for (int32_t& token : example.tokens) token = static_cast<int32_t>(stream.between(1, 5));
    const auto count = [&](int32_t id) {
      return std::count(example.tokens.begin(), example.tokens.end(), id);
    };
    example.target = {params().text("labels") == "random" ? int32_t{stream.coin()}
                                                          : int32_t{count(1) > count(2)}};
    if (params().flag("evidence"))
      example.evidence = {0, static_cast<int32_t>(1 + index % (std::ssize(example.tokens) - 1))};
    return example;
  }
  TaskShape do_shape() const override {
    return {.length = 8, .vocab = 6, .classes = 2, .causal = params().flag("causal")};
  }
  double do_chance() const override { return 0.5; }
  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>&) const override {
    return {};
  }
  std::string do_draw(const Example&) const override { return ""; }

  Stored source_;
};

inline TaskInfo counting() {
  TaskInfo info;
  info.name = "counting";
  info.params = {{"train_examples", 256, "finite"},
                 {"labels", {"count", "random"}, "what is asked"},
                 {"causal", false, ""},
                 {"evidence", false, "the first token, and one of the others"}};
  info.make = make_task<Counting>;
  return info;
}

inline double loss_of(const Encoder& model, const Batch& batch) {
  const NoGrad no_grad;
  return static_cast<double>(cross_entropy(model.forward(batch), batch.targets).value()[0]);
}

// The gradient of every weight against central differences.
inline void check_gradients(const ModelConfig& config, const Batch& batch) {
  const Encoder model(config);
  cross_entropy(model.forward(batch), batch.targets).backward();
  // The step balances truncation (step²) against rounding (epsilon / step) of a loss of size 1.
  const double step = std::cbrt(static_cast<double>(kEpsilon)),
               tolerance = (kIsDouble ? 1 : 10) * step * step;
  for (const Weight& weight : model.weights()) {
    ASSERT_TRUE(weight.value.grad().defined()) << weight.name;
    for (real& x : weight.value.value().values()) {
      const int64_t i = &x - weight.value.value().data();
      const real before = x;
      x = before + static_cast<real>(step);
      const double above = loss_of(model, batch);
      x = before - static_cast<real>(step);
      const double below = loss_of(model, batch);
      x = before;
      const double expected = (above - below) / (2 * step),
                   got = static_cast<double>(weight.value.grad()[i]);
      EXPECT_TRUE(std::abs(got - expected) <= 50 * tolerance)
          << weight.name << "[" << i << "] " << got << " " << expected;
    }
  }
}

// A task of any shape whose examples a test writes by hand, by split and index.

class Made final : public Task {
 public:
  Made(TaskShape shape, Stored::Make make, int64_t train_examples = 16)
      : Task(Params("made", {{"train_examples", train_examples, "as many as are trained on"}}, {})),
        shape_(shape),
        source_(std::move(make)) {}

 private:
  Example do_example(Rng&) const override { return {}; }
  const Source* do_source() const override { return &source_; }
  TaskShape do_shape() const override { return shape_; }
  double do_chance() const override { return 0.5; }
  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>&) const override {
    return {};
  }
  std::string do_draw(const Example&) const override { return ""; }

  TaskShape shape_;
  Stored source_;
};

}  // namespace attn::toy
