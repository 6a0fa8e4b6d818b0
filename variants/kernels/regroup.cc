// Positions brought together; see regroup.h. Near memory speed, parallel over groups.
#include "variants/kernels/regroup.h"

#include <algorithm>

#include "core/parallel.h"

namespace attn {
namespace {

// body(matrix of x, group of all, its row in `from`)
template <class Body>
void for_groups(const Regroup& r, const Tensor& x, const Body& body) {
  const int64_t matrices = x.dim(0) * x.dim(1);
  parallel_for(matrices * r.groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group)
      for (int64_t a = 0; a < r.rows; ++a) {
        const int64_t at = r.from[static_cast<size_t>(group % r.groups * r.rows + a)];
        body(at < 0 ? -1 : group / r.groups * r.len + at, group * r.rows + a);
      }
  });
}

}  // namespace

std::vector<int64_t> Regroup::sizes(int64_t length) const {
  std::vector<int64_t> result;
  for (int64_t g = 0; g < groups; ++g)
    result.push_back(std::count_if(from.begin() + g * rows, from.begin() + (g + 1) * rows,
                                   [&](int64_t at) { return at >= 0 && at < length; }));
  return result;
}

Tensor Regroup::take(const Tensor& x, real empty) const {
  const int64_t width = x.shape().rank() == 4 ? x.dim(3) : 1;
  const int64_t all = x.dim(0) * x.dim(1) * groups;
  const Tensor result(x.shape().rank() == 4 ? Shape{all, 1, rows, width} : Shape{all, 1, rows});
  for_groups(*this, x, [&](int64_t source, int64_t to) {
    if (source < 0)
      std::fill_n(result.data() + to * width, width, empty);
    else
      std::copy_n(x.data() + source * width, width, result.data() + to * width);
  });
  return result;
}

void Regroup::add_back(const Tensor& grouped, const Tensor& x) const {
  const int64_t width = x.dim(3);
  for_groups(*this, x, [&](int64_t source, int64_t from_row) {
    if (source < 0) return;
    const real* const in = grouped.data() + from_row * width;
    real* const out = x.data() + source * width;
    for (int64_t c = 0; c < width; ++c) out[c] += in[c];
  });
}

Regroup residues(int64_t len, int64_t stride) {
  Regroup r{.len = len, .groups = std::min(stride, std::max<int64_t>(1, len))};
  r.rows = (len + stride - 1) / stride;
  for (int64_t g = 0; g < r.groups; ++g)
    for (int64_t a = 0; a < r.rows; ++a)
      r.from.push_back(g + a * stride < len ? g + a * stride : -1);
  return r;
}

Regroup selection(int64_t len, std::vector<int64_t> positions) {
  const auto count = static_cast<int64_t>(positions.size());
  return {.len = len, .groups = 1, .rows = count, .from = std::move(positions)};
}

}  // namespace attn
