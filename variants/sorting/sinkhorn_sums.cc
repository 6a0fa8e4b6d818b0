// Sums of rows over blocks and runs; see block_sorting.h. One pass over x, bound by memory
// bandwidth.
#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/marks.h"
#include "core/base/recycled.h"
#include "core/simd/rows.h"
#include "variants/sorting/block_sorting.h"

namespace attn {
namespace {

struct Run {
  int64_t size, length;  // of each block, and of the batch entry
};
using Runs = std::vector<Run, Recycled<Run>>;

int64_t run_length(int64_t length, int64_t max_runs) {
  return std::max<int64_t>(1, (length + max_runs - 1) / max_runs);
}

// Row r of the result sums rows [r, r + 1)·size of its batch entry.
Var sums_of(const Var& x, int64_t rows, Runs runs) {
  const Mark mark(Part::sums);
  const int64_t heads = x.dim(1), n = x.dim(2), d = x.dim(3);
  const Tensor out = Tensor::zeros(x.shape().with(2, rows)), from = x.value();
  over_range(x.dim(0) * heads, n * d, [&](int64_t begin, int64_t end) {
    for (int64_t h = begin; h < end; ++h) {
      const auto [size, length] = runs[static_cast<size_t>(h / heads)];
      for (int64_t i = 0; i < length; i += size)
        add_column_sums(out.data() + (h * rows + i / size) * d, from.data() + (h * n + i) * d,
                        std::min(size, length - i), d);
    }
  });
  return custom_op(out, {x},
                   [=, runs = std::move(runs)](const Tensor& grad, std::span<Tensor> grads) {
                     const Mark back(Part::sums);
                     over_range(grad.dim(0) * heads, n * d, [&](int64_t begin, int64_t end) {
                       for (int64_t h = begin; h < end; ++h) {
                         const auto [size, length] = runs[static_cast<size_t>(h / heads)];
                         for (int64_t i = 0; i < length; ++i)
                           add_column_sums(grads[0].data() + (h * n + i) * d,
                                           grad.data() + (h * rows + i / size) * d, 1, d);
                       }
                     });
                   });
}

}  // namespace

Var block_sums(const Var& x, int64_t block, std::span<const int64_t> lengths) {
  Runs runs;
  for (int64_t b = 0; b < x.dim(0); ++b) runs.push_back({block, length_of(lengths, b, x.dim(2))});
  return sums_of(x, (x.dim(2) + block - 1) / block, std::move(runs));
}

int64_t run_count(int64_t length, int64_t max_runs) {
  const int64_t run = run_length(length, max_runs);
  return (length + run - 1) / run;
}

Var run_sums(const Var& x, int64_t max_runs, std::span<const int64_t> lengths) {
  Runs runs;
  int64_t rows = 0;
  for (int64_t b = 0; b < x.dim(0); ++b) {
    const int64_t length = length_of(lengths, b, x.dim(2));
    runs.push_back({run_length(length, max_runs), length});
    rows = std::max(rows, run_count(length, max_runs));
  }
  return sums_of(x, std::max<int64_t>(1, rows), std::move(runs));
}

}  // namespace attn
