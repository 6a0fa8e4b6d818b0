// Choice of positions by their products with centroids; see routes.h. Parallel over heads.
#include "variants/hashing/routes.h"

#include <algorithm>

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

NearestRoutes nearest_routes(const Tensor& x, const Tensor& centroids, int64_t most,
                             const std::vector<int64_t>& lengths) {
  const Mark mark(Part::selection);
  const int64_t heads = x.dim(0) * x.dim(1), len = x.dim(2), count = centroids.dim(1);
  const int64_t window = std::min(most, len);  // a cluster has no more members
  IndexList nearest(static_cast<size_t>(heads * len), 0);
  run_tasks(heads, room_of(x) + padded_reals(len), [&](int64_t head, real* work) {
    const int64_t valid = valid_of(x, lengths, head);
    real* const best = work + room_of(x);
    std::fill_n(best, valid, -kInfinity);
    int64_t* const own = nearest.data() + head * len;
    if (valid == 0) return;
    for_products(x, centroids, head, valid, work, [&](int64_t c, const real* scores) {
      for (int64_t i = 0; i < valid; ++i)
        if (scores[i] > best[i]) best[i] = scores[i], own[i] = c;
    });
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

}  // namespace attn
