// Parallel over tiles of targets; each worker has a gradient of `right` of its own. See
// aft_gradient.h.
#include "variants/synthetic/aft_gradient.h"

#include <algorithm>
#include <cmath>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/product.h"
#include "core/simd/rows.h"

namespace attn {
namespace {

constexpr int64_t kGradientTile = ExponentialPairs::kTile;

class BiasGradient {
 public:
  BiasGradient(const ExponentialPairs& p, const Biases& biases, const SourceRows& keys,
               const SourceRows& queries)
      : p_(p), biases_(biases), keys_(keys), queries_(queries), dim_(p.dim) {
    if (biases.small) {
      of_keys_ = exponentials_of(p, keys);
      ExponentialPairs all = p;  // every query has an output, also in the padding
      all.lengths.clear();
      of_queries_ = exponentials_of(all, queries);
    }
    grad_ = padded_reals(kGradientTile * kGradientTile);
    pack_ = 2 * grad_;
    left_ = pack_ + padded_reals(std::max(bias_work(p), packed_reals(kGradientTile, 2 * dim_)));
    factor_ = left_ + kGradientTile * 2 * dim_;
    total_ = factor_ + dim_;
  }

  void run(real* left, real* right) const {
    const int64_t parts = worker_count(p_.tiles()),
                  size = biases_.distance ? p_.heads * biases_.count : p_.len * p_.rank;
    const Tensor rights = Tensor::zeros({parts, size});
    run_tasks(parts, total_, [&](int64_t part, real* work) {
      for (int64_t at = part; at < p_.tiles(); at += parts)
        for (int64_t entry = 0; entry < p_.batch; ++entry) {
          const ExponentialPairs::Tiles range = p_.of(at, entry);
          for (int64_t from = range.near; from < range.far; ++from)
            add_tile(entry, at, from, work, left, rights.data() + part * size);
        }
    });
    for (int64_t part = 0; part < parts; ++part)
      for (int64_t i = 0; i < size; ++i) right[i] += rights[part * size + i];
  }

 private:
  void add_tile(int64_t entry, int64_t at, int64_t from, real* work, real* left,
                real* right) const {
    const int64_t rows = p_.rows(at),
                  cols = std::min(kGradientTile, p_.valid(entry) - from * kGradientTile);
    real* const grad = work + grad_;
    for (int64_t h = 0; h < p_.heads && biases_.distance; ++h) {
      tile_gradient(entry, {h, h + 1}, at, from, work);
      const Mark mark(Part::sums);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < cols; ++c) {
          const int64_t i = biases_.origin + (at - from) * kGradientTile + r - c;
          if (i >= 0 && i < biases_.count)
            right[h * biases_.count + i] += grad[r * kGradientTile + c];
        }
    }
    if (biases_.distance) return;
    tile_gradient(entry, {0, p_.heads}, at, from, work);
    hide(at, from, grad);
    const Mark mark(Part::products);
    const int64_t rank = p_.rank;
    add_product(rows, rank, cols, {grad, kGradientTile},
                {biases_.right + from * kGradientTile * rank, rank},
                left + at * kGradientTile * rank, rank);
    add_product(cols, rank, rows, {grad, 1, kGradientTile},
                {biases_.left + at * kGradientTile * rank, rank},
                right + from * kGradientTile * rank, rank);
    count_flops(4 * static_cast<double>(rows * cols * rank));
  }

  struct Heads {
    int64_t begin, end;
    int64_t count() const { return end - begin; }
  };
  // Of the biases of a tile, which these heads share.
  void tile_gradient(int64_t entry, Heads heads, int64_t at, int64_t from, real* work) const {
    real *const weights = work, *const grad = work + grad_;
    tile_biases(p_, biases_, heads.begin, at, from, work + pack_, weights);
    if (!biases_.small || (from == at && p_.sees == ExponentialPairs::Sees::past))
      by_pairs(entry, heads, at, from, weights, grad, work);
    else
      by_products(entry, heads, at, from, weights, grad, work);
  }

  // Biases outside the window are 0 and not learned.
  void hide(int64_t at, int64_t from, real* grad) const {
    const Mark mark(Part::masks);
    const int64_t apart = (at - from) * kGradientTile;
    if (std::abs(apart) + kGradientTile <= p_.window) return;
    for (int64_t r = 0; r < kGradientTile; ++r)
      for (int64_t c = 0; c < kGradientTile; ++c)
        if (std::abs(apart + r - c) >= p_.window) grad[r * kGradientTile + c] = 0;
  }

  void by_products(int64_t entry, Heads heads, int64_t at, int64_t from, real* weights, real* grad,
                   real* work) const {
    const int64_t rows = p_.rows(at),
                  cols = std::min(kGradientTile, p_.valid(entry) - from * kGradientTile);
    real *const left = work + left_, *const factor = work + factor_, *const pack = work + pack_;
    std::fill_n(grad, kGradientTile * kGradientTile, real(0));
    for (int64_t h = heads.begin; h < heads.end; ++h) {
      const int64_t head = entry * p_.heads + h;
      const real *const key_top = of_keys_.tops.data() + (head * p_.tiles() + from) * dim_,
                        *const query_top =
                            of_queries_.tops.data() + (head * p_.tiles() + at) * dim_;
      for (int64_t c = 0; c < dim_; ++c) factor[c] = key_top[c] + query_top[c];
      exp_row(dim_, factor, 1, 0, factor);  // at most e^kMostBias: each query sees each of the keys
      const real* query = of_queries_.rows.data() + (head * p_.len + at * kGradientTile) * 2 * dim_;
      for (int64_t r = 0; r < rows; ++r, query += 2 * dim_) {
        real* const to = left + r * 2 * dim_;
        ATTN_INDEPENDENT
        for (int64_t c = 0; c < dim_; ++c) {
          to[c] = factor[c] * query[c];
          to[dim_ + c] = -factor[c] * query[dim_ + c];
        }
      }
      pack_transposed(of_keys_.rows.data() + (head * p_.len + from * kGradientTile) * 2 * dim_,
                      cols, 2 * dim_, 2 * dim_, pack);
      add_product(rows, cols, 2 * dim_, {left, 2 * dim_}, packed(pack, 2 * dim_), grad,
                  kGradientTile);
    }
    const Mark mark(Part::softmax);
    exp_row(rows * kGradientTile, weights, 1, 0, weights);
    for (int64_t i = 0; i < rows * kGradientTile; ++i) grad[i] *= weights[i];
    count_flops(4 * static_cast<double>(rows * cols * heads.count() * dim_));
  }

  void by_pairs(int64_t entry, Heads heads, int64_t at, int64_t from, const real* weights,
                real* grad, real* work) const {
    const Mark mark(Part::softmax);
    const int64_t cols = std::min(kGradientTile, p_.valid(entry) - from * kGradientTile);
    real* const terms = work + factor_;
    std::fill_n(grad, kGradientTile * kGradientTile, real(0));
    int64_t pairs = 0;
    for (int64_t r = 0; r < p_.rows(at); ++r) {
      const int64_t count =
          from == at && p_.sees == ExponentialPairs::Sees::past ? std::min(cols, r + 1) : cols;
      pairs += count;
      for (int64_t h = heads.begin; h < heads.end; ++h)
        for (int64_t c = 0; c < count; ++c) {
          const int64_t head = entry * p_.heads + h;
          const int64_t query = (head * p_.len + at * kGradientTile + r) * dim_,
                        key = (head * p_.len + from * kGradientTile + c) * dim_;
          const real bias = weights[r * kGradientTile + c];
          for (int64_t e = 0; e < dim_; ++e)
            terms[e] = keys_.x[key + e] + queries_.x[query + e] + bias;
          exp_row(dim_, terms, 1, 0, terms);
          for (int64_t e = 0; e < dim_; ++e)
            terms[e] *= queries_.a[query + e] * keys_.a[key + e] - queries_.b[query + e];
          grad[r * kGradientTile + c] += sum_in_row(terms, dim_);
        }
    }
    count_flops(4 * static_cast<double>(pairs * heads.count() * dim_));
  }

  const ExponentialPairs& p_;
  const Biases& biases_;
  const SourceRows &keys_, &queries_;
  int64_t dim_;
  Exponentials of_keys_, of_queries_;
  int64_t grad_, pack_, left_, factor_, total_;  // offsets; biases are at 0
};

}  // namespace

void add_bias_gradient(const ExponentialPairs& p, const Biases& biases, const SourceRows& keys,
                       const SourceRows& queries, real* left, real* right) {
  BiasGradient(p, biases, keys, queries).run(left, right);
}

double bias_gradient_flops(const ExponentialPairs& p) {
  return static_cast<double>(p.batch) *
         (4 * static_cast<double>(p.heads * p.dim) * p.near_pairs(false) +
          6 * static_cast<double>(p.rank) * p.near_pairs(true));
}

}  // namespace attn
