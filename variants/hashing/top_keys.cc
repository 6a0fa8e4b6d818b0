// Top keys of clusters; see top_keys.h. The logits of some clusters to all keys are computed at
// once, a list keeps the largest, and the members of a cluster share its gathered keys.
#include "variants/hashing/top_keys.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/recycled.h"
#include "core/simd/product.h"
#include "core/simd/row_ops.h"
#include "core/simd/softmax_rows.h"
#include "core/simd/top_rows.h"

namespace attn {
namespace {

constexpr int64_t kClusters = 2 * kTileRows;  // clusters whose logits are computed at once
constexpr int64_t kMembers = 8 * kTileRows;   // members of a strip

int64_t padded(int64_t keys) { return (keys + kRowMultiple - 1) / kRowMultiple * kRowMultiple; }

// Arrays of the members of one cluster.
struct Strip {
  int64_t dim, keys, stride;
  real *key_panels, *keys_at, *values, *value_panels;  // packed, [keys, dim], [keys, dim], packed
  real *queries, *scores, *out, *grads;                // [kMembers, ...]
  real *sums, *rescale;                                // [kMembers]

  Strip(real* work, int64_t d, int64_t count) : dim(d), keys(count), stride(padded(count)) {
    const auto take = [&](int64_t reals) {
      real* const here = work;
      work += padded_reals(reals);
      return here;
    };
    key_panels = take(packed_reals(count, d));
    value_panels = take(packed_reals(count, d));
    keys_at = take(count * d);
    values = take(count * d);
    queries = take(kMembers * d);
    out = take(kMembers * d);
    scores = take(kMembers * stride);
    grads = take(kMembers * stride);
    sums = take(2 * kMembers);
    rescale = take(kMembers);
  }
  static int64_t reals(int64_t d, int64_t count) {
    return 2 * padded_reals(packed_reals(count, d)) + 2 * padded_reals(count * d) +
           2 * padded_reals(kMembers * d) + 2 * padded_reals(kMembers * padded(count)) +
           padded_reals(2 * kMembers) + padded_reals(kMembers);
  }

  void gather_keys(const TopKeysHead& h, const int32_t* top) const {
    const Mark mark(Part::gathering);
    for (int64_t s = 0; s < keys; ++s) {
      std::copy_n(h.k + top[s] * dim, dim, keys_at + s * dim);
      std::copy_n(h.v + top[s] * dim, dim, values + s * dim);
    }
    pack_transposed(keys_at, keys, dim, dim, key_panels);
  }

  // The weights of `rows` members, not yet divided by `sums`.
  void weigh(const TopKeysHead& h, const int32_t* members, int64_t rows) const {
    const real factor = h.scale * std::numbers::log2e_v<real>;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < dim; ++c) queries[r * dim + c] = h.q[members[r] * dim + c] * factor;
    product(rows, keys, dim, {queries, dim}, packed(key_panels, dim), scores, stride);
    for (int64_t r = 0; r < rows; ++r)
      std::fill(scores + r * stride + keys, scores + (r + 1) * stride, -kInfinity);
    std::fill_n(sums, rows, real(0));
    real* const row_max = sums + kMembers;
    std::fill_n(row_max, rows, -kInfinity);
    online_softmax_rows(rows, stride, scores, stride, row_max, sums, rescale);
  }
};

real mass_of(const TopKeysHead& h, int64_t cluster) {
  real mass = 0;
  for (int64_t s = 0; s < h.keys; ++s) mass += h.weights[cluster * h.row + s];
  return mass;
}

// The choice of each cluster's top keys: all keys of the head packed, and logits of some clusters.
class Choice {
 public:
  Choice(const TopKeysHead& head, real* work)
      : h_(head),
        stride_(padded(head.valid)),
        panels_(work),
        logits_(panels_ + padded_reals(packed_reals(head.valid, head.dim))),
        means_(logits_ + padded_reals(kClusters * stride_)),
        list_(means_ + padded_reals(kClusters * head.dim)) {
    const Mark mark(Part::selection);
    pack_transposed(h_.k, h_.valid, h_.dim, h_.dim, panels_);
  }
  real* end() const { return list_ + TopList::reals(h_.keys); }  // of its workspace

  // Writes the top keys and their weights of the clusters of `which` that have members.
  void run(const QueryClusters& clusters, int64_t index, Span which) const {
    const Mark mark(Part::selection);
    const int64_t d = h_.dim, rows = which.end - which.begin;
    const real factor = h_.scale * std::numbers::log2e_v<real>;
    for (int64_t at = 0; at < rows * d; ++at) means_[at] = h_.means[which.begin * d + at] * factor;
    product(rows, h_.valid, d, {means_, d}, packed(panels_, d), logits_, stride_);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t cluster = which.begin + r;
      const Span members = clusters.members(index, cluster);
      if (members.begin == members.end) continue;
      const real* const logits = logits_ + r * stride_;
      int32_t* const top = h_.top + cluster * h_.row;
      top_places(h_.valid, logits, h_.keys, top, list_);
      for (int64_t s = 0; s < h_.keys; ++s)
        h_.weights[cluster * h_.row + s] = std::exp2(logits[top[s]] - h_.log_sum[cluster]);
    }
  }

 private:
  const TopKeysHead& h_;
  int64_t stride_;
  real *panels_, *logits_, *means_, *list_;
};

// Writes the outputs of a cluster's members: the rest of its keys, and their own weights of the
// top.
void answer(const TopKeysHead& h, const Strip& strip, const int32_t* members, int64_t count,
            int64_t cluster, real* rest, real* result) {
  const int64_t d = h.dim;
  strip.gather_keys(h, h.top + cluster * h.row);
  std::copy_n(h.out + cluster * d, d, rest);
  for (int64_t s = 0; s < h.keys; ++s)
    for (int64_t c = 0; c < d; ++c)
      rest[c] -= h.weights[cluster * h.row + s] * strip.values[s * d + c];
  const real mass = mass_of(h, cluster);
  for (int64_t first = 0; first < count; first += kMembers) {
    const int64_t rows = std::min(kMembers, count - first);
    strip.weigh(h, members + first, rows);
    product(rows, d, h.keys, {strip.scores, strip.stride}, {strip.values, d}, strip.out, d);
    const Mark mark(Part::softmax);
    for (int64_t r = 0; r < rows; ++r) {
      const real factor = mass / strip.sums[r];
      real* const to = result + members[first + r] * d;
      for (int64_t c = 0; c < d; ++c) to[c] = rest[c] + factor * strip.out[r * d + c];
    }
  }
}

}  // namespace

int64_t top_keys_workspace(int64_t len, int64_t dim, int64_t keys) {
  return padded_reals(packed_reals(len, dim)) + padded_reals(kClusters * padded(len)) +
         padded_reals(kClusters * dim) + TopList::reals(keys) + padded_reals(dim) +
         Strip::reals(dim, keys);
}

void weigh_top_keys(const TopKeysHead& h, const QueryClusters& clusters, int64_t index, real* work,
                    real* result) {
  const int64_t d = h.dim;
  const Choice choice(h, work);
  const Strip strip(choice.end() + padded_reals(d), d, h.keys);
  Tally done;
  for (int64_t first = 0; first < h.clusters; first += kClusters) {
    const Span which{first, std::min(first + kClusters, h.clusters)};
    choice.run(clusters, index, which);
    done.multiply_adds((which.end - which.begin) * h.valid * d);
    for (int64_t cluster = which.begin; cluster < which.end; ++cluster) {
      const Span members = clusters.members(index, cluster);
      if (members.begin == members.end) continue;
      answer(h, strip, clusters.order(index) + members.begin, members.end - members.begin, cluster,
             choice.end(), result);
      done.multiply_adds(2 * (members.end - members.begin) * h.keys * d);
    }
  }
}

int64_t top_keys_backward_workspace(int64_t dim, int64_t keys) {
  return 2 * padded_reals(keys * dim) + Strip::reals(dim, keys);
}

void top_keys_backward(const TopKeysHead& h, const QueryClusters& clusters, int64_t index,
                       const TopKeysGradient& g, real* work) {
  const int64_t d = h.dim, size = h.keys * d;
  real *const to_keys = work, *const to_values = work + padded_reals(size);
  const Strip strip(to_values + padded_reals(size), d, h.keys);
  Tally done;
  for (int64_t cluster = 0; cluster < h.clusters; ++cluster) {
    g.dots[cluster] = 0;
    const Span all = clusters.members(index, cluster);
    if (all.begin == all.end) continue;
    const int32_t* const members = clusters.order(index) + all.begin;
    const int32_t* const top = h.top + cluster * h.row;
    const real* const weights = h.weights + cluster * h.row;
    const real mass = mass_of(h, cluster);
    strip.gather_keys(h, top);
    pack_transposed(strip.values, h.keys, d, d, strip.value_panels);
    std::fill_n(to_keys, size, real(0));
    std::fill_n(to_values, size, real(0));
    real of_mass = 0;
    for (int64_t first = 0; first < all.end - all.begin; first += kMembers) {
      const int64_t rows = std::min(kMembers, all.end - all.begin - first);
      strip.weigh(h, members + first, rows);
      for (int64_t r = 0; r < rows; ++r)
        std::copy_n(g.grad + members[first + r] * d, d, strip.out + r * d);
      product(rows, h.keys, d, {strip.out, d}, packed(strip.value_panels, d), strip.grads,
              strip.stride);
      for (int64_t r = 0; r < rows; ++r) {
        real *const x = strip.scores + r * strip.stride, *const dx = strip.grads + r * strip.stride;
        real dot = 0;
        for (int64_t s = 0; s < h.keys; ++s) x[s] /= strip.sums[r], dot += x[s] * dx[s];
        of_mass += dot;
        for (int64_t s = 0; s < h.keys; ++s) {
          dx[s] = h.scale * mass * x[s] * (dx[s] - dot);
          x[s] *= mass;
        }
        std::copy_n(h.q + members[first + r] * d, d, strip.queries + r * d);
      }
      add_product(h.keys, d, rows, {strip.scores, 1, strip.stride}, {strip.out, d}, to_values, d);
      add_product(h.keys, d, rows, {strip.grads, 1, strip.stride}, {strip.queries, d}, to_keys, d);
      product(rows, d, h.keys, {strip.grads, strip.stride}, {strip.keys_at, d}, strip.queries, d);
      for (int64_t r = 0; g.q && r < rows; ++r)
        for (int64_t c = 0; c < d; ++c) g.q[members[first + r] * d + c] += strip.queries[r * d + c];
      done.multiply_adds(5 * rows * h.keys * d);
    }
    const real *const sums = g.of_clusters + cluster * d, *const mean = h.means + cluster * d;
    for (int64_t s = 0; s < h.keys; ++s) {
      const real excess = of_mass - row_dot(sums, strip.values + s * d, d);
      const real slope = h.scale * weights[s] * excess;
      g.dots[cluster] += weights[s] * excess;
      for (int64_t c = 0; c < d; ++c) {
        g.means[cluster * d + c] += slope * strip.keys_at[s * d + c];
        if (g.k) g.k[top[s] * d + c] += to_keys[s * d + c] + slope * mean[c];
        if (g.v) g.v[top[s] * d + c] += to_values[s * d + c] - weights[s] * sums[c];
      }
    }
    done.multiply_adds(4 * h.keys * d);
  }
}

}  // namespace attn
