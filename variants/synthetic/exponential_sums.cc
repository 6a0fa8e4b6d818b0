// Tiles of targets and sources; products where a tile of sources is visible as a whole, otherwise
// pair by pair. Parallel over batch × tiles; heads may share the biases. See exponential_sums.h.
#include "variants/synthetic/exponential_sums.h"

#include <algorithm>
#include <cmath>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/product.h"
#include "core/simd/rows.h"
#include "variants/synthetic/exponential_tiles.h"

namespace attn {
namespace {

constexpr int64_t kSumTile = ExponentialPairs::kTile;

class TileSums {
 public:
  TileSums(const ExponentialPairs& p, const Biases& biases, const SourceRows& from,
           const OnSums& finish)
      : p_(p), biases_(biases), from_(from), finish_(finish), layout_(p) {
    if (biases.small || p.is_local()) e_ = exponentials_of(p, from);
    if (p.is_local()) far_ = exponential_detail::far_sums(p, e_);
  }

  struct Layout {  // offsets into a worker's workspace
    int64_t tops, row_tops, sums, product, biases, pack, pairs, total;
    explicit Layout(const ExponentialPairs& p) {
      tops = 0;  // [heads, dim]
      row_tops = padded_reals(p.heads * p.dim);
      sums = row_tops + p.heads * kSumTile * p.dim;  // [heads, kSumTile, 2·dim]
      product = sums + p.heads * kSumTile * 2 * p.dim;
      biases = product + kSumTile * 2 * p.dim;
      pack = biases + padded_reals(kSumTile * kSumTile);
      pairs = pack + padded_reals(bias_work(p));  // [kSumTile + 2, dim]
      total = pairs + (kSumTile + 2) * p.dim;
    }
  };

  void run() const {
    run_tasks(p_.batch * p_.tiles(), layout_.total, [&](int64_t task, real* work) {
      const int64_t t = task % p_.tiles();  // from both ends: equal shares take the same time
      tile(task / p_.tiles(), t % 2 ? p_.tiles() - 1 - t / 2 : t / 2, work);
    });
  }

 private:
  void tile(int64_t entry, int64_t at, real* work) const {
    const ExponentialPairs::Tiles range = p_.of(at, entry);
    const auto of_pairs = [&](int64_t from) {
      return !biases_.small || (from == at && p_.sees != ExponentialPairs::Sees::all);
    };
    start(entry, at, work);
    for (int64_t from = range.near; from < range.far; ++from)
      if (!of_pairs(from)) add_products(entry, at, from, work);
    for (int64_t h = 0; h < p_.heads; ++h)
      for (int64_t r = 0; r < kSumTile; ++r)
        std::copy_n(work + layout_.tops + h * p_.dim, p_.dim, row_top(h, r, work));
    for (int64_t from = range.near; from < range.far; ++from)
      if (of_pairs(from)) add_pairs(entry, at, from, work);
    for (int64_t h = 0; h < p_.heads; ++h)
      finish_({entry * p_.heads + h, at * kSumTile, p_.rows(at), row_top(h, 0, work),
               row_sums(h, 0, work)},
              work + layout_.pairs);
  }

  real* row_top(int64_t h, int64_t r, real* work) const {
    return work + layout_.row_tops + (h * kSumTile + r) * p_.dim;
  }
  real* row_sums(int64_t h, int64_t r, real* work) const {
    return work + layout_.sums + (h * kSumTile + r) * 2 * p_.dim;
  }
  int64_t sources(int64_t entry, int64_t from) const {
    return std::min(kSumTile, p_.valid(entry) - from * kSumTile);
  }

  // What lies outside the window, or nothing.
  void start(int64_t entry, int64_t at, real* work) const {
    for (int64_t h = 0; h < p_.heads; ++h) {
      real* const top = work + layout_.tops + h * p_.dim;
      if (!p_.is_local()) {
        std::fill_n(top, p_.dim, -kInfinity);
        std::fill_n(row_sums(h, 0, work), kSumTile * 2 * p_.dim, real(0));
        continue;
      }
      const real* const state =
          far_.data() + ((entry * p_.heads + h) * p_.tiles() + at) * 3 * p_.dim;
      std::copy_n(state, p_.dim, top);
      for (int64_t r = 0; r < kSumTile; ++r)
        std::copy_n(state + p_.dim, 2 * p_.dim, row_sums(h, r, work));
    }
  }

  void add_products(int64_t entry, int64_t at, int64_t from, real* work) const {
    const int64_t rows = p_.rows(at), count = sources(entry, from);
    real *const weights = work + layout_.biases, *const products = work + layout_.product;
    for (int64_t h = 0; h < p_.heads; ++h) {
      const int64_t head = entry * p_.heads + h;
      if (needs_biases(h)) {
        tile_biases(p_, biases_, h, at, from, work + layout_.pack, weights);
        const Mark mark(Part::softmax);
        exp_row(rows * kSumTile, weights, 1, 0, weights);
      }
      product(rows, 2 * p_.dim, count, {weights, kSumTile},
              {e_.rows.data() + (head * p_.len + from * kSumTile) * 2 * p_.dim, 2 * p_.dim},
              products, 2 * p_.dim);
      const Mark mark(Part::softmax);
      exponential_detail::merge(p_.dim, rows, e_.tops.data() + (head * p_.tiles() + from) * p_.dim,
                                products, work + layout_.tops + h * p_.dim, row_sums(h, 0, work),
                                work + layout_.pairs);
    }
    count_flops(4 * static_cast<double>(rows * count * p_.heads * p_.dim));
  }

  void add_pairs(int64_t entry, int64_t at, int64_t from, real* work) const {
    int64_t pairs = 0;
    for (int64_t h = 0; h < p_.heads; ++h) {
      if (needs_biases(h))
        tile_biases(p_, biases_, h, at, from, work + layout_.pack, work + layout_.biases);
      const Mark mark(Part::softmax);
      for (int64_t r = 0; r < p_.rows(at); ++r) {
        int64_t first = 0, last = sources(entry, from);
        if (from == at && p_.sees == ExponentialPairs::Sees::past) last = std::min(last, r + 1);
        if (from == at && p_.sees == ExponentialPairs::Sees::future) first = std::min(last, r);
        add_row(entry * p_.heads + h, from * kSumTile + first, last - first,
                work + layout_.biases + r * kSumTile + first, row_top(h, r, work),
                row_sums(h, r, work), work + layout_.pairs);
        pairs += last - first;
      }
    }
    count_flops(4 * static_cast<double>(pairs * p_.dim));
  }

  // Heads share factors.
  bool needs_biases(int64_t h) const { return h == 0 || biases_.distance; }

  // Adds `count` sources to one target: their largest exponent in each channel, then the weights.
  void add_row(int64_t head, int64_t first, int64_t count, const real* bias, real* top, real* sums,
               real* work) const {
    const int64_t dim = p_.dim, at = (head * p_.len + first) * dim;
    real *const weights = work, *const highest = work + kSumTile * dim, *const keep = highest + dim;
    std::copy_n(top, dim, highest);
    for (int64_t j = 0; j < count; ++j) {
      const real* const x = from_.x + at + j * dim;
      ATTN_INDEPENDENT
      for (int64_t c = 0; c < dim; ++c) {
        const real exponent = x[c] + bias[j];
        weights[j * dim + c] = exponent;
        highest[c] = exponent > highest[c] ? exponent : highest[c];
      }
    }
    ATTN_INDEPENDENT
    for (int64_t c = 0; c < dim; ++c) keep[c] = top[c] - highest[c], top[c] = highest[c];
    for (int64_t j = 0; j < count; ++j)
      for (int64_t c = 0; c < dim; ++c) weights[j * dim + c] -= highest[c];
    exp_row(dim, keep, 1, 0, keep);
    exp_row(count * dim, weights, 1, 0, weights);
    ATTN_INDEPENDENT
    for (int64_t c = 0; c < dim; ++c) sums[c] *= keep[c], sums[dim + c] *= keep[c];
    for (int64_t j = 0; j < count; ++j) {
      const real *const a = from_.a + at + j * dim, *const weight = weights + j * dim;
      const real* const b = from_.b ? from_.b + at + j * dim : nullptr;
      ATTN_INDEPENDENT
      for (int64_t c = 0; c < dim; ++c) {
        sums[c] += weight[c] * a[c];
        sums[dim + c] += b ? weight[c] * b[c] : weight[c];
      }
    }
  }

  const ExponentialPairs& p_;
  const Biases& biases_;
  const SourceRows& from_;
  const OnSums& finish_;
  Layout layout_;
  Exponentials e_;
  Tensor far_;
};

}  // namespace

void exponential_sums(const ExponentialPairs& p, const Biases& biases, const SourceRows& from,
                      const OnSums& finish) {
  if (!p.biased)
    exponential_detail::scan(p, from, finish);
  else
    TileSums(p, biases, from, finish).run();
}

int64_t exponential_sums_bytes(const ExponentialPairs& p) {
  if (!p.biased) return workspace_bytes(p.all_heads(), exponential_detail::scan_reals(p));
  const int64_t far = p.is_local() ? p.all_heads() * p.tiles() * 3 * p.dim : 0;
  return (exponential_reals(p) + far) * static_cast<int64_t>(sizeof(real)) +
         workspace_bytes(p.batch * p.tiles(), TileSums::Layout(p).total);
}

double exponential_sums_flops(const ExponentialPairs& p) {
  const auto heads = static_cast<double>(p.all_heads()), dim = static_cast<double>(p.dim);
  if (!p.biased) return exponential_detail::kSourceFlops * heads * dim * static_cast<double>(p.len);
  return 4 * heads * dim * p.near_pairs(false) + heads * exponential_detail::far_flops(p, p.len) +
         2 * static_cast<double>(p.batch * p.rank) * p.near_pairs(true);
}

}  // namespace attn
