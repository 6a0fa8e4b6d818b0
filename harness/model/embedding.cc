// Token table or linear input, cls vector and positions. Vaswani et al. 2017, arXiv:1706.03762,
// sections 3.4 and 3.5. Time and memory O(size · length · width).
#include "harness/model/embedding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/ops/ops.h"
#include "harness/model/weights.h"

namespace attn {

namespace {

// Tokens and positions start at one scale, so that a head can look at either from the first step on
// (content by content as well as "the token before me"); layer norm makes the value itself nearly
// irrelevant to the first forward, but it sets how fast AdamW's steps turn the vectors.
constexpr double kInputScale = 0.5;

}  // namespace

InputEmbedding::InputEmbedding(const ModelConfig& config)
    : width_(config.layer.width), vocab_(config.vocab), length_(config.length) {
  const auto learned = [&](Weight weight) {
    weights_.push_back(weight);
    return weight.value;
  };
  if (vocab_ > 0) {
    table_ = learned(normal_weight("tokens", {vocab_, width_}, config.seed, kInputScale));
  } else {
    slope_ =
        learned(normal_weight("values.slope", {config.channels, width_}, config.seed, kInputScale));
    offset_ = learned(constant_weight("values.offset", {width_}, 0));
  }
  const bool with_cls = config.pooling == Pooling::cls && !config.per_token;
  if (with_cls) cls_ = learned(normal_weight("cls", {width_}, config.seed, kInputScale));
  const int64_t places = length_ + (with_cls ? 1 : 0);
  const MemoryScope scope(Purpose::weights);
  if (config.positions == Positions::learned)
    positions_ = learned(normal_weight("positions", {places, width_}, config.seed, kInputScale));
  if (config.positions == Positions::sinusoidal) positions_ = Var(sinusoids(places, width_));
}

Var InputEmbedding::content(const Batch& batch) const {
  const int64_t sequences = batch.sequences();
  const size_t count = static_cast<size_t>(sequences * batch.length);
  ATTN_CHECK(sequences >= 1 && batch.length >= 1 && batch.length <= length_,
             "a batch of {} sequences of length {} does not fit a model of length {}", sequences,
             batch.length, length_);
  if (vocab_ > 0) {
    ATTN_CHECK(batch.tokens.size() == count, "the batch holds {} tokens instead of {}",
               batch.tokens.size(), count);
    return embedding(table_, batch.tokens, {sequences, batch.length});
  }
  const int64_t channels = slope_.dim(0);
  ATTN_CHECK(batch.values.size() == count * static_cast<size_t>(channels),
             "the batch holds {} values instead of {} of {} channels", batch.values.size(), count,
             channels);
  const Tensor values({sequences, batch.length, channels});
  std::copy(batch.values.begin(), batch.values.end(), values.data());
  return linear(Var(values), slope_, offset_);
}

Var InputEmbedding::forward(const Batch& batch, int64_t first) const {
  Var x = content(batch);
  if (has_cls()) {
    const Var front = add(Var(Tensor::zeros({batch.sequences(), 1, width_})), cls_);
    const std::array<Var, 2> parts = {front, x};
    x = concat(parts, 1);
  }
  if (!positions_.defined()) return x;
  const int64_t len = x.dim(1);
  const bool all = len == positions_.dim(0);
  const Var places = all ? positions_ : slice(positions_, 0, first, first + len);  // [len, width]
  return reshape(add(reshape(x, {1, batch.sequences(), len, width_}), places),
                 {batch.sequences(), len, width_});
}

Tensor sinusoids(int64_t length, int64_t width) {
  const Tensor table({length, width});
  for (int64_t i = 0; i < length; ++i)
    for (int64_t c = 0; c < width; ++c) {
      const double rate =
          std::pow(10000.0, -static_cast<double>(c / 2 * 2) / static_cast<double>(width));
      const double angle = static_cast<double>(i) * rate;
      table[i * width + c] = static_cast<real>(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  return table;
}

}  // namespace attn
