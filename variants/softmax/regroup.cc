// Gathering and scattering of positions; see regroup.h. Bound by memory bandwidth; parallel over
// groups.
#include "variants/softmax/regroup.h"

#include <algorithm>

#include "core/base/marks.h"
#include "core/base/parallel.h"

namespace attn {
namespace {

int64_t width_of(const Tensor& x) { return x.shape().rank() == 4 ? x.dim(3) : 1; }

// body(position in x of all, or -1; row in the groups)
template <class HeadBody>
void for_groups(const Regroup& r, Span which, const HeadBody& body) {
  const Mark mark(Part::gathering);
  parallel_for(which.end - which.begin, 1, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      const int64_t group = which.begin + g;
      const int64_t* const from = r.from.data() + group % r.groups * r.rows;
      for (int64_t a = 0; a < r.rows; ++a)
        body(from[a] < 0 ? -1 : group / r.groups * r.len + from[a], g * r.rows + a);
    }
  });
}

}  // namespace

void Regroup::append_sizes(int64_t length, IndexList& sizes) const {
  for (int64_t g = 0; g < groups; ++g)
    sizes.push_back(std::count_if(from.begin() + g * rows, from.begin() + (g + 1) * rows,
                                  [&](int64_t at) { return at >= 0 && at < length; }));
}

Tensor Regroup::gather(const Tensor& x, Span which, real empty) const {
  const int64_t width = width_of(x), all = which.end - which.begin;
  const Tensor result(x.shape().rank() == 4 ? Shape{all, 1, rows, width} : Shape{all, 1, rows});
  for_groups(*this, which, [&](int64_t source, int64_t to) {
    if (source < 0)
      std::fill_n(result.data() + to * width, width, empty);
    else
      std::copy_n(x.data() + source * width, width, result.data() + to * width);
  });
  return result;
}

void Regroup::scatter(const Tensor& grouped, Span which, const Tensor& x) const {
  const int64_t width = width_of(x);
  for_groups(*this, which, [&](int64_t to, int64_t from_row) {
    if (to >= 0) std::copy_n(grouped.data() + from_row * width, width, x.data() + to * width);
  });
}

void Regroup::scatter_add(const Tensor& grouped, Span which, const Tensor& x) const {
  const int64_t width = width_of(x);
  for_groups(*this, which, [&](int64_t to, int64_t from_row) {
    if (to < 0) return;
    const real* const in = grouped.data() + from_row * width;
    real* const out = x.data() + to * width;
    for (int64_t c = 0; c < width; ++c) out[c] += in[c];
  });
}

int64_t Regroup::chunk(int64_t arrays, int64_t width) const {
  constexpr int64_t kCached = 1 << 17;  // numbers: 512 KiB in float
  return std::max<int64_t>(1, kCached / std::max<int64_t>(1, arrays * rows * width)) * threads();
}

Regroup residues(int64_t len, int64_t stride) {
  Regroup r{.len = len, .groups = std::min(stride, std::max<int64_t>(1, len))};
  r.rows = (len + stride - 1) / stride;
  for (int64_t g = 0; g < r.groups; ++g)
    for (int64_t a = 0; a < r.rows; ++a)
      r.from.push_back(g + a * stride < len ? g + a * stride : -1);
  return r;
}

Regroup selection(int64_t len, IndexList positions) {
  const auto count = static_cast<int64_t>(positions.size());
  return {.len = len, .groups = 1, .rows = count, .from = std::move(positions)};
}

}  // namespace attn
