// Rows of the latent, and the absorbed decode: queries are brought to the latent by the keys' up
// projection, so that all heads share the cached rows as keys and as values. See shared_latent.h.
#include "variants/lowrank/shared_latent.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/base/counters.h"
#include "core/base/workers.h"
#include "core/ops/ops.h"
#include "core/ops/ops_heads.h"
#include "core/simd/blocked_product.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

constexpr double kEpsilonOfNorm = 1e-6;
constexpr int64_t kBlock = 256;  // positions whose scores are held at once

Var root_mean_square_norm(const Var& x, const Var& gain) {
  const Var factors = rsqrt(shift(mean_last(square(x)), kEpsilonOfNorm));
  return multiply(scale_rows(x, factors), gain);
}

// x·W of few rows x [rows, depth], which reads the weights where they are: linear() packs them, a
// pass over all weights that pays for many rows alone.
Tensor product_of_few(const Tensor& x, const Tensor& weight, int64_t rows) {
  constexpr int64_t kWorth = 1 << 17;  // weights of a task: about 10 µs a row
  const int64_t depth = weight.dim(0), cols = weight.dim(1);
  const int64_t each = (std::max<int64_t>(1, kWorth / depth) + kPanel - 1) / kPanel * kPanel;
  const Tensor to({rows, cols});
  const int64_t room = blocked_product_reals(rows, each, depth, {nullptr, cols, 1});
  run_tasks((cols + each - 1) / each, room, [&](int64_t task, real* work) {
    const int64_t j = task * each;
    blocked_product(rows, std::min(each, cols - j), depth, {x.data(), depth, 1},
                    {weight.data() + j, cols, 1}, to.data() + j, cols, false, work);
  });
  count_flops(2 * static_cast<double>(rows * depth * cols));
  return to;
}

// Of the products x·down [batch, len, r + R] and x·query [batch, heads, len, d + R].
LatentRows latent_of(const Var& rows, const SharedLatent& w, const Tensor& table, int64_t first) {
  const int64_t r = w.latent(), rotary = w.rotary(), batch = rows.dim(0), len = rows.dim(1);
  LatentRows result;
  if (rotary > 0)
    result.rotated =
        rotate(reshape(slice(rows, 2, r, r + rotary), {batch, 1, len, rotary}), table, first);
  const Var latent = rotary > 0 ? slice(rows, 2, 0, r) : rows;
  result.latent = w.gain.defined() ? root_mean_square_norm(latent, w.gain) : latent;
  return result;
}
Var queries_of(const Var& q, const SharedLatent& w, const Tensor& table, int64_t first) {
  const int64_t d = w.head_dim(), rotary = w.rotary();
  if (rotary == 0) return q;
  const std::array parts = {slice(q, 3, 0, d), rotate(slice(q, 3, d, d + rotary), table, first)};
  return concat(parts, 3);
}

class LatentDecoder final : public Decoder {
 public:
  LatentDecoder(const Shape& position, int64_t capacity, const SharedLatent& weights,
                const Tensor& table)
      : Decoder(position, capacity),
        batch_(position[0]),
        w_(weights),
        table_(table),
        row_(w_.latent() + w_.rotary()),
        cache_({position[0], capacity, row_}) {}

 private:
  // v [batch, heads, len, head_dim] are rows of the layer's input.
  void do_extend(const Tensor&, const Tensor& v) override {
    const NoGrad no_grad;
    put(latent_rows(merge_heads(Var(v)), w_, table_, length()), v.dim(2));
  }
  void do_step(const real*, const real*, const real* v, real* out) override {
    const NoGrad no_grad;
    const Tensor rows({batch_, w_.heads * head_dim()});
    std::copy_n(v, rows.size(), rows.data());
    const Tensor down = product_of_few(rows, w_.down.value(), batch_);
    put(latent_of(Var(down.reshaped({batch_, 1, row_})), w_, table_, length()), 1);
    const Tensor query = product_of_few(rows, w_.query.value(), batch_);
    const Shape of_heads{batch_, w_.heads, 1, head_dim() + w_.rotary()};
    const Tensor answer =
        mixed(queries_of(Var(query.reshaped(of_heads)), w_, table_, length()).value());
    const Tensor result = product_of_few(answer, w_.out.value(), batch_);
    std::copy_n(result.data(), result.size(), out);
    count_bytes(sizeof(real) * static_cast<double>(moved()));
  }

  void put(const LatentRows& rows, int64_t len) const {
    const int64_t r = w_.latent(), rotary = w_.rotary();
    for (int64_t i = 0; i < batch_ * len; ++i) {
      real* const to = cache_.data() + (i / len * capacity() + length() + i % len) * row_;
      std::copy_n(rows.latent.value().data() + i * r, r, to);
      if (rotary > 0) std::copy_n(rows.rotated.value().data() + i * rotary, rotary, to + r);
    }
  }

  // What a worker holds: queries as rows of the cache, packed, scores of a block, and sums, which
  // attend() begins.
  struct Work {
    real *queries, *panels, *scores, *logits, *space;
    GroupSums sums;
  };
  int64_t work_reals() const {
    const int64_t h = w_.heads;
    return padded_reals(h * row_) + packed_reals(h, row_) + 2 * padded_reals(h * kBlock) +
           padded_reals(product_reals()) + GroupSums::reals(h, w_.latent());
  }
  int64_t product_reals() const {
    const int64_t cols = w_.heads * w_.head_dim();
    return std::max(blocked_product_reals(1, w_.latent(), w_.head_dim(), {nullptr, 1, cols}),
                    blocked_product_reals(1, w_.head_dim(), w_.latent(), {nullptr, cols, 1}));
  }
  Work in(real* work) const {
    const int64_t h = w_.heads;
    Work parts;
    parts.queries = work;
    parts.panels = parts.queries + padded_reals(h * row_);
    parts.scores = parts.panels + packed_reals(h, row_);
    parts.logits = parts.scores + padded_reals(h * kBlock);
    parts.space = parts.logits + padded_reals(h * kBlock);
    parts.sums = GroupSums::at(parts.space + padded_reals(product_reals()), h, w_.latent());
    return parts;
  }

  // q [batch, heads, 1, head_dim + R] -> [batch, 1, heads·head_dim].
  Tensor mixed(const Tensor& q) const {
    const int64_t h = w_.heads, cols = h * w_.head_dim(), query = h * (w_.head_dim() + w_.rotary());
    const int64_t parts = std::min(parts_of_units(batch_), length() / kBlock + 1);
    const Tensor to({batch_, 1, cols});
    if (parts == 1)
      run_tasks(batch_, work_reals(), [&](int64_t b, real* space) {
        const Work work = in(space);
        absorb(q.data() + b * query, work);
        attend(rows_of(b), length() + 1, work);
        finish(work, to.data() + b * cols);
      });
    else
      mix_in_parts(parts, q.data(), query, to.data());
    count_flops(2 * static_cast<double>(batch_ * (attended() + 2 * w_.latent() * cols)));
    return to;
  }
  const real* rows_of(int64_t b) const { return cache_.data() + b * capacity() * row_; }

  // The same where sequences do not divide evenly among the threads: each in parts of its
  // positions, whose sums are merged. Rows of q are `query` numbers apart.
  void mix_in_parts(int64_t parts, const real* q, int64_t query, real* to) const {
    const int64_t each = padded_reals(work_reals()), blocks = length() / kBlock + 1;
    const Block space(static_cast<size_t>(batch_ * parts * each) * sizeof(real),
                      Purpose::workspace);
    const auto of_part = [&](int64_t b, int64_t part) {
      return in(static_cast<real*>(space.data()) + (b * parts + part) * each);
    };
    run_tasks(batch_, 0, [&](int64_t b, real*) { absorb(q + b * query, of_part(b, 0)); });
    run_tasks(batch_ * parts, 0, [&](int64_t task, real*) {
      const int64_t b = task / parts, part = task % parts;
      Work work = of_part(b, part);
      work.panels = of_part(b, 0).panels;
      const int64_t from = blocks * part / parts * kBlock,
                    until = std::min(length() + 1, blocks * (part + 1) / parts * kBlock);
      attend(rows_of(b) + from * row_, until - from, work);
    });
    run_tasks(batch_, 0, [&](int64_t b, real*) {
      const Work all = of_part(b, 0);
      for (int64_t part = 1; part < parts; ++part) merge(of_part(b, part).sums, all.sums);
      finish(all, to + b * w_.heads * w_.head_dim());
    });
  }

  void merge(const GroupSums& from, const GroupSums& into) const {
    for (int64_t head = 0; head < w_.heads; ++head) {
      RowSums row = into.row(head, w_.latent());
      merge_row(w_.latent(), from.row(head, w_.latent()), row);
      into.row_max[head] = row.row_max;
      into.row_sum[head] = row.row_sum;
    }
  }

  // The sums of values, brought to the width of a head.
  void finish(const Work& work, real* to) const {
    const int64_t d = w_.head_dim(), r = w_.latent(), cols = w_.heads * d;
    for (int64_t head = 0; head < w_.heads; ++head) {
      real* const sum = work.sums.sum + head * r;
      divide_row(r, sum, work.sums.row_sum[head], sum);
      blocked_product(1, d, r, {sum, r, 1}, {w_.up_v.value().data() + head * d, cols, 1},
                      to + head * d, cols, false, work.space);
    }
  }

  // Queries as rows of the cache, in units of log2, and packed.
  void absorb(const real* q, const Work& work) const {
    const int64_t d = w_.head_dim(), rotary = w_.rotary(), r = w_.latent(), cols = w_.heads * d;
    const auto scale =
        static_cast<real>(std::numbers::log2e / std::sqrt(static_cast<double>(d + rotary)));
    for (int64_t head = 0; head < w_.heads; ++head, q += d + rotary) {
      real* const to = work.queries + head * row_;
      blocked_product(1, r, d, {q, d, 1}, {w_.up_k.value().data() + head * d, 1, cols}, to, r,
                      false, work.space);
      std::copy_n(q + d, rotary, to + r);
      for (int64_t c = 0; c < row_; ++c) to[c] *= scale;
    }
    pack_transposed(work.queries, w_.heads, row_, row_, work.panels);
  }

  void attend(const real* rows, int64_t count, const Work& work) const {
    const int64_t h = w_.heads, r = w_.latent();
    GroupSums::in(work.sums.sum, h, r);
    for (int64_t first = 0; first < count; first += kBlock) {
      const int64_t some = std::min(kBlock, count - first);
      const real* const block = rows + first * row_;
      product(some, h, row_, {block, row_, 1}, packed(work.panels, row_), work.scores, h);
      for (int64_t head = 0; head < h; ++head)
        for (int64_t j = 0; j < some; ++j)
          work.logits[head * kBlock + j] = work.scores[j * h + head];
      weigh_keys(some, work.logits, kBlock, work.sums);
      add_product(h, r, some, {work.logits, kBlock}, {block, row_}, work.sums.sum, r,
                  work.sums.rescale);
    }
  }

  int64_t attended() const {  // multiply-adds of attend()
    return w_.heads * (length() + 1) * (row_ + w_.latent());
  }
  int64_t moved() const {  // numbers: the cache read, a row of it written, the weights
    return batch_ * row_ * (length() + 2) + w_.numbers();
  }
  int64_t do_state_bytes() const override {
    return cache_.size() * static_cast<int64_t>(sizeof(real));
  }
  double do_step_flops() const override {
    return 2 * static_cast<double>(batch_ * (attended() + w_.numbers()));
  }
  double do_step_bytes() const override { return sizeof(real) * static_cast<double>(moved()); }

  int64_t batch_;
  SharedLatent w_;
  Tensor table_;  // [capacity or more, R]
  int64_t row_;
  Tensor cache_;  // [batch, capacity, latent + rotary]
};

}  // namespace

int64_t SharedLatent::numbers() const {
  int64_t sum = 0;
  for (const Var& weight : {down, up_k, up_v, query, out}) sum += weight.shape().size();
  return sum;
}

LatentRows latent_rows(const Var& x, const SharedLatent& w, const Tensor& table, int64_t first) {
  return latent_of(linear(x, w.down, {}), w, table, first);
}

Var latent_queries(const Var& x, const SharedLatent& w, const Tensor& table, int64_t first) {
  return queries_of(linear_to_heads(x, w.query, w.heads), w, table, first);
}

std::unique_ptr<Decoder> latent_decoder(const Shape& position, int64_t capacity,
                                        const SharedLatent& weights, const Tensor& table) {
  return std::make_unique<LatentDecoder>(position, capacity, weights, table);
}

Cost latent_attention_cost(const AttentionShape& s, const SharedLatent& w) {
  const int64_t rotary = w.rotary(), width = s.heads * s.head_dim;
  const int64_t d = s.head_dim, row = d + rotary;
  const SoftmaxWork work = softmax_work({.batch = s.batch,
                                         .heads = s.heads,
                                         .q_len = s.kv_len,
                                         .kv_len = s.kv_len,
                                         .dim = row,
                                         .value_dim = d,
                                         .causal = s.causal});
  const auto rows = static_cast<double>(s.batch * s.kv_len),
             wide = static_cast<double>(s.heads * row), plain = static_cast<double>(s.heads * d),
             held = static_cast<double>(w.latent() + rotary), size = double{sizeof(real)};
  const double products = 2 * rows * static_cast<double>(w.numbers());
  const double rotated = wide - plain, latent = static_cast<double>(w.latent());
  // While the latent is normalised, and while its keys and values are made
  const double latents = held + (rotary > 0 ? held : 0) + (w.gain.defined() ? 2 * latent : 0),
               made = held + plain + (rotary > 0 ? rotated + wide : wide);
  const double weight = size * static_cast<double>(packed_reals(width, width));
  Cost cost;
  cost.flops = work.flops + products;
  cost.backward_flops = work.backward_flops + 2 * products;
  cost.bytes = size * (rows * (2 * plain + 2 * held + 6 * wide + 4 * plain) +
                       static_cast<double>(w.numbers()));
  const double kept = size * rows * (wide + plain);
  cost.peak_bytes =
      std::max(size * rows * std::max(latents, made),
               kept + std::max({size * rows * (rotary > 0 ? 2 * wide + plain + rotated : wide),
                                size * rows * (wide + plain) + work.workspace_bytes,
                                size * rows * (wide + 2 * plain) + weight}));
  cost.state_bytes = size * rows * held;
  return cost;
}

}  // namespace attn
