// Choice of positions by their products with centroids; see routes.h. Parallel over heads.
#include "variants/hashing/routes.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/product.h"
#include "core/simd/top_rows.h"

namespace attn {
namespace {

constexpr int64_t kCentroids = 2 * kTileRows;  // whose products are computed at once

int64_t valid_of(const Tensor& x, const std::vector<int64_t>& lengths, int64_t head) {
  return lengths.empty() ? x.dim(2) : lengths[static_cast<size_t>(head / x.dim(1))];
}

int64_t room_of(const Tensor& x) {
  return padded_reals(packed_reals(x.dim(2), x.dim(3))) + padded_reals(kCentroids * x.dim(2));
}

// visit(centroid, its products with the `valid` positions of the head)
template <class Visit>
void for_products(const Tensor& x, const Tensor& centroids, int64_t head, int64_t valid, real* work,
                  const Visit& visit) {
  const int64_t count = centroids.dim(1), d = x.dim(3);
  const real* const own = centroids.data() + head % x.dim(1) * count * d;
  real* const scores = work + padded_reals(packed_reals(x.dim(2), d));
  pack_transposed(x.data() + head * x.dim(2) * d, valid, d, d, work);
  for (int64_t c = 0; c < count; c += kCentroids) {
    const int64_t rows = std::min(kCentroids, count - c);
    product(rows, valid, d, {own + c * d, d}, packed(work, d), scores, valid);
    for (int64_t r = 0; r < rows; ++r) visit(c + r, scores + r * valid);
  }
  count_flops(2 * static_cast<double>(count * valid * d));
}

}  // namespace

Routes balanced_routes(const Tensor& x, const Tensor& centroids, int64_t window,
                       const std::vector<int64_t>& lengths) {
  const Mark mark(Part::selection);
  const int64_t heads = x.dim(0) * x.dim(1), len = x.dim(2), count = centroids.dim(1);
  const auto chosen = [&](int64_t valid) {
    return std::min(valid, window > 0 ? window : (valid + count - 1) / count);
  };
  Routes routes{
      .regroup = {.len = heads * len, .groups = heads * count, .rows = chosen(len), .from = {}},
      .sizes = {}};
  const int64_t rows = routes.regroup.rows;
  routes.regroup.from.assign(static_cast<size_t>(heads * count * rows), -1);
  for (int64_t g = 0; g < heads * count; ++g)
    routes.sizes.push_back(chosen(valid_of(x, lengths, g / count)));
  const int64_t ints = padded_reals(rows);  // an int32 takes no more room than a number
  const int64_t room = room_of(x) + ints + TopList::reals(rows);
  run_tasks(heads, room, [&](int64_t head, real* work) {
    const int64_t valid = valid_of(x, lengths, head), wanted = chosen(valid);
    if (valid == 0) return;
    auto* const top = reinterpret_cast<int32_t*>(work + room_of(x));
    for_products(x, centroids, head, valid, work, [&](int64_t c, const real* scores) {
      top_places(valid, scores, wanted, top, work + room_of(x) + ints);
      for (int64_t a = 0; a < wanted; ++a)
        routes.regroup.from[static_cast<size_t>((head * count + c) * rows + a)] =
            head * len + top[a];
    });
  });
  return routes;
}

namespace {

// The nearest centroid of the valid rows of a head; `best` has x.dim(2) numbers.
void nearest_centroids(const Tensor& x, const Tensor& centroids, int64_t head, int64_t valid,
                       real* work, real* best, int64_t* own) {
  std::fill_n(best, valid, -kInfinity);
  if (valid == 0) return;
  for_products(x, centroids, head, valid, work, [&](int64_t c, const real* scores) {
    for (int64_t i = 0; i < valid; ++i)
      if (scores[i] > best[i]) best[i] = scores[i], own[i] = c;
  });
}

}  // namespace

NearestRoutes nearest_routes(const Tensor& x, const Tensor& centroids, int64_t most,
                             const std::vector<int64_t>& lengths) {
  const Mark mark(Part::selection);
  const int64_t heads = x.dim(0) * x.dim(1), len = x.dim(2), count = centroids.dim(1);
  const int64_t window = std::min(most, len);  // a cluster has no more members
  IndexList nearest(static_cast<size_t>(heads * len), 0);
  run_tasks(heads, room_of(x) + padded_reals(len), [&](int64_t head, real* work) {
    nearest_centroids(x, centroids, head, valid_of(x, lengths, head), work, work + room_of(x),
                      nearest.data() + head * len);
  });
  NearestRoutes made;
  for (Routes* const each : {&made.chunks, &made.before, &made.after})
    each->regroup = {.len = heads * len, .groups = 0, .rows = window, .from = {}};
  const auto append = [](Routes& to, const int64_t* members, int64_t size, int64_t rows) {
    to.regroup.from.insert(to.regroup.from.end(), members, members + size);
    to.regroup.from.insert(to.regroup.from.end(), static_cast<size_t>(rows - size), -1);
    to.sizes.push_back(size);
    ++to.regroup.groups;
  };
  std::vector<IndexList, Recycled<IndexList>> members(static_cast<size_t>(count));
  for (int64_t head = 0; head < heads; ++head) {
    for (IndexList& list : members) list.clear();
    for (int64_t i = 0; i < valid_of(x, lengths, head); ++i)
      members[static_cast<size_t>(nearest[static_cast<size_t>(head * len + i)])].push_back(
          head * len + i);
    for (const IndexList& list : members)
      for (int64_t first = 0; first < std::ssize(list); first += window) {
        const int64_t* const at = list.data() + first;
        const int64_t size = std::min(window, std::ssize(list) - first);
        append(made.chunks, at, size, window);
        if (first == 0) continue;
        append(made.before, at - window, window, window);
        append(made.after, at, size, window);
      }
  }
  return made;
}

Tensor moved_centroids(const Tensor& x, const Tensor& y, const Tensor& centroids, double decay,
                       const std::vector<int64_t>& lengths) {
  const int64_t heads = centroids.dim(0), count = centroids.dim(1), d = centroids.dim(2);
  const Tensor moved = centroids.clone();
  IndexList nearest(static_cast<size_t>(heads * x.dim(2)), 0);
  // A head at a time over all sequences, so that sums have one order.
  run_tasks(heads, room_of(x) + padded_reals(x.dim(2)), [&](int64_t h, real* work) {
    std::vector<double> target(static_cast<size_t>(count * d));
    int64_t* const own = nearest.data() + h * x.dim(2);
    for (const Tensor* const rows : {&x, &y}) {
      std::vector<double> sums(target.size()), members(static_cast<size_t>(count));
      for (int64_t b = 0; b < x.dim(0); ++b) {
        const int64_t head = b * heads + h, valid = valid_of(*rows, lengths, head);
        nearest_centroids(*rows, centroids, head, valid, work, work + room_of(x), own);
        for (int64_t i = 0; i < valid; ++i) {
          const real* const row = rows->data() + (head * x.dim(2) + i) * d;
          double squares = 0;
          for (int64_t c = 0; c < d; ++c) squares += static_cast<double>(row[c] * row[c]);
          members[static_cast<size_t>(own[i])] += 1;
          for (int64_t c = 0; squares > 0 && c < d; ++c)
            sums[static_cast<size_t>(own[i] * d + c)] +=
                static_cast<double>(row[c]) / std::sqrt(squares);
        }
      }
      for (size_t at = 0; at < sums.size(); ++at) {
        const double all = members[at / static_cast<size_t>(d)];
        if (all > 0) target[at] += sums[at] / (2 * all);
      }
    }
    for (int64_t c = 0; c < count; ++c) {
      real* const mu = moved.data() + (h * count + c) * d;
      const double* const to = target.data() + c * d;
      if (std::all_of(to, to + d, [](double value) { return value == 0; })) continue;
      double squares = 0;
      for (int64_t e = 0; e < d; ++e) {
        mu[e] = static_cast<real>(decay * static_cast<double>(mu[e]) + (1 - decay) * to[e]);
        squares += static_cast<double>(mu[e] * mu[e]);
      }
      for (int64_t e = 0; squares > 0 && e < d; ++e) mu[e] /= static_cast<real>(std::sqrt(squares));
    }
  });
  return moved;
}

}  // namespace attn
