// Which positions belong to which centroid: k-means routing. Roy et al. 2021, arXiv:2003.05997,
// section 4.1. 2·n·clusters·d FLOPs, and a selection for each centroid.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/tensor.h"
#include "variants/softmax/softmax.h"

namespace attn {

// Groups of positions of all heads: those of one Regroup whose sequence has batch·heads·len rows.
struct Routes {
  Regroup regroup;
  IndexList sizes;  // [groups]: positions of each; the others are empty
};

// x [batch, heads, len, dim], centroids [heads, clusters, dim]. Each centroid of each head gets the
// `window` positions with the largest products, of equal ones the first, ascending; window 0 stands
// for ⌈length / clusters⌉. Padded positions are never chosen.
Routes balanced_routes(const Tensor& x, const Tensor& centroids, int64_t window,
                       const std::vector<int64_t>& lengths);

// Each position belongs to the centroid with the largest product, the first of equal ones; the
// members of a centroid are cut into chunks of `window`, ascending. A later position changes
// neither the centroid nor the chunk of an earlier one.
struct NearestRoutes {
  Routes chunks;
  Routes before;  // of each chunk that has one, the chunk before it
  Routes after;   // of these pairs, the later chunk
};
NearestRoutes nearest_routes(const Tensor& x, const Tensor& centroids, int64_t window,
                             const std::vector<int64_t>& lengths);

// Centroids after a step of online k-means: μ ← unit(decay·μ + (1 - decay)·m), where m
// is half the mean of the rows of x, and half that of the rows of y, that are nearest to μ, each
// row of length 1. A half without rows is 0; a centroid without any stays.
Tensor moved_centroids(const Tensor& x, const Tensor& y, const Tensor& centroids, double decay,
                       const std::vector<int64_t>& lengths);

}  // namespace attn
