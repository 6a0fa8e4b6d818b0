// Products of tiles of rows with the weight, which is packed once. The gradient of x is the same
// product with the transposed weight. See window_product.h.
#include "variants/convolution/window_product.h"

#include <algorithm>
#include <vector>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/recycled.h"
#include "core/simd/row_tiles.h"
#include "core/simd/rows.h"

namespace attn {
namespace {

// Rows of a tile: enough that reading and writing a weight's gradient once a tile is hidden behind
// the tile's products, few enough that they stay in the second-level cache.
constexpr int64_t kTile = 192;

TilePlan plan_of(int64_t batch, int64_t len, double depth_times_out) {
  return plan_tiles(batch, len, kTile, static_cast<double>(batch * len) * depth_times_out);
}

// Of the windows that reach over one end: fewer than `kernel`, and what they see.
int64_t edge_reals(int64_t kernel, int64_t width) { return padded_reals(2 * (kernel - 1) * width); }

// The windows of one side, x or the gradient of the result: rows of `width` numbers.
struct Windows {
  int64_t batch, len, width, kernel, before;
  std::vector<int64_t, Recycled<int64_t>> lengths;

  int64_t length(int64_t entry) const {
    return lengths.empty() ? len : lengths[static_cast<size_t>(entry)];
  }
  int64_t valid(const RowTile& tile) const {
    return std::clamp<int64_t>(length(tile.entry) - tile.first, 0, tile.count);
  }
  // body(row, rows, their windows, `width` apart), row counted among all, for the tile's valid
  // rows: windows in place, or in `work` where they reach over an end.
  template <class Body>
  void over_runs(const real* x, const RowTile& tile, real* work, const Body& body) const {
    const int64_t last = tile.first + valid(tile), length_here = length(tile.entry);
    const real* const entry = x + tile.entry * len * width;
    const auto run = [&](int64_t begin, int64_t end, bool inside) {
      begin = std::max(begin, tile.first), end = std::min(end, last);
      if (begin >= end) return;
      const real* const from = inside ? entry + (begin - before) * width
                                      : gathered(entry, begin, end, length_here, work);
      body(tile.row + begin - tile.first, end - begin, from);
    };
    const int64_t inner = std::max(before, length_here - kernel + before + 1);
    run(0, before, false);
    run(before, inner, true);
    run(inner, length_here, false);
  }
  const real* gathered(const real* entry, int64_t begin, int64_t end, int64_t length_here,
                       real* work) const {
    const Mark mark(Part::gathering);
    const int64_t first = begin - before, last = end - before + kernel - 1;
    const int64_t from = std::max<int64_t>(first, 0), to = std::min(last, length_here);
    std::fill_n(work, (from - first) * width, real(0));
    real* const after = std::copy(entry + from * width, entry + to * width,  //
                                  work + (from - first) * width);
    std::fill_n(after, (last - to) * width, real(0));
    return work;
  }
};

// A workspace a worker for windows that reach over an end.
struct Edges {
  Edges(const TilePlan& plan, const Windows& w)
      : each(edge_reals(w.kernel, w.width)),
        block(static_cast<size_t>(plan.workers * each) * sizeof(real), Purpose::workspace) {}
  real* of(int64_t worker) const { return static_cast<real*>(block.data()) + worker * each; }
  int64_t each;
  Block block;
};

struct Epilogue {
  const real* bias = nullptr;
  bool tanh = false, accumulate = false;
};

// c (+)= x · weight [depth, cols], read where it is: a copy in panels is no faster here, and would
// be memory that does not grow with the length.
void times(int64_t rows, Left x, const Tensor& weight, real* c, bool accumulate) {
  constexpr int64_t kDepth = 256;  // 64 KiB of 64 columns, in the second-level cache
  const int64_t depth = weight.dim(0), cols = weight.dim(1);
  for (int64_t k = 0; k < depth; k += kDepth)
    for (int64_t j = 0; j < cols; j += kPanel) {
      const int64_t n = std::min(kPanel, cols - j), d = std::min(kDepth, depth - k);
      const Left left = {x.data + k, x.row, 1};
      const Right right = {weight.data() + k * cols + j, cols};
      if (accumulate || k > 0)
        add_product(rows, n, d, left, right, c + j, cols);
      else
        product(rows, n, d, left, right, c + j, cols);
    }
}

void begin_with(const real* bias, int64_t rows, int64_t out, real* to) {
  const Mark mark(Part::elementwise);
  for (int64_t i = 0; bias && i < rows; ++i) std::copy_n(bias, out, to + i * out);
}

void activate(int64_t size, real* to) {
  const Mark mark(Part::elementwise);
  tanh_row(size, to, to);
}

void multiply(const Windows& w, const real* x, const Tensor& weight, const Epilogue& then,
              real* result) {
  const int64_t out = weight.dim(1);
  const double each = static_cast<double>(weight.dim(0)) * static_cast<double>(out);
  const TilePlan plan = plan_of(w.batch, w.len, each);
  const Edges edges(plan, w);
  over_row_tiles(plan, [&](const RowTile& tile, int64_t worker) {
    const int64_t valid = w.valid(tile);
    if (!then.accumulate)
      std::fill_n(result + (tile.row + valid) * out, (tile.count - valid) * out, real(0));
    w.over_runs(x, tile, edges.of(worker), [&](int64_t row, int64_t rows, const real* windows) {
      real* const to = result + row * out;
      begin_with(then.bias, rows, out, to);
      times(rows, {windows, w.width, 1}, weight, to, then.bias || then.accumulate);
      if (then.tanh) activate(rows * out, to);
    });
    count_flops(2 * static_cast<double>(valid) * each);
  });
}

void add_weight_gradient(const Windows& w, const real* x, const real* g, int64_t out, real* weight,
                         real* bias) {
  const int64_t depth = w.kernel * w.width;
  const double each = static_cast<double>(depth) * static_cast<double>(out);
  const TilePlan plan = plan_of(w.batch, w.len, each);
  const Edges edges(plan, w);
  const WorkerSums weights(weight, depth * out, plan.workers), biases(bias, out, plan.workers);
  parallel_for(plan.workers, 1, [&](int64_t begin, int64_t end) {
    for (int64_t worker = begin; worker < end; ++worker) {
      weights.clear(worker);
      biases.clear(worker);
    }
  });
  over_row_tiles(plan, [&](const RowTile& tile, int64_t worker) {
    const int64_t valid = w.valid(tile);
    if (bias) add_column_sums(biases.of(worker), g + tile.row * out, valid, out);
    if (!weight) return;
    w.over_runs(x, tile, edges.of(worker), [&](int64_t row, int64_t rows, const real* windows) {
      for (int64_t j = 0; j < out; j += kPanel)
        add_product(depth, std::min(kPanel, out - j), rows, {windows, 1, w.width},
                    {g + row * out + j, out}, weights.of(worker) + j, out);
    });
    count_flops(2 * static_cast<double>(valid) * each);
  });
  weights.finish();
  biases.finish();
}

// W[k] [in, out] at k becomes its transpose at kernel - 1 - k: [kernel·out, in].
Tensor transposed(const Tensor& weight, int64_t kernel, int64_t in, int64_t out) {
  const Mark mark(Part::packing);
  const Tensor result({kernel * out, in});
  for (int64_t k = 0; k < kernel; ++k)
    for (int64_t i = 0; i < in; ++i)
      for (int64_t o = 0; o < out; ++o)
        result[((kernel - 1 - k) * out + o) * in + i] = weight[(k * in + i) * out + o];
  return result;
}

Tensor through_tanh(const Tensor& g, const Tensor& y) {
  const Tensor result(g.shape());
  over_range(g.size(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) result[i] = g[i] * (1 - y[i] * y[i]);
  });
  return result;
}

}  // namespace

Var window_product(const Var& x, const Var& weight, const Var& bias, const Window& window) {
  const int64_t in = x.dim(2), out = weight.dim(-1), kernel = window.kernel;
  const bool fits = x.shape().rank() == 3 && weight.shape().size() == kernel * in * out &&
                    window.before >= 0 && window.before < kernel;
  ATTN_CHECK(fits, "a window of {} rows, {} before: {} times {}", kernel, window.before,
             x.shape().str(), weight.shape().str());
  ATTN_CHECK(!bias.defined() || bias.shape() == Shape({out}), "a bias of {} for {} columns",
             bias.defined() ? bias.shape().str() : "", out);
  const Windows w{x.dim(0), x.dim(1),      in,
                  kernel,   window.before, {window.lengths.begin(), window.lengths.end()}};
  const Tensor flat = weight.value().reshaped({kernel * in, out}), y(x.shape().with(2, out));
  multiply(w, x.value().data(), flat,
           {bias.defined() ? bias.value().data() : nullptr, window.tanh, false}, y.data());
  const auto backward = [w, flat, from = x.value(), y = window.tanh ? y : Tensor()](
                            const Tensor& grad, std::span<Tensor> grads) {
    const Tensor g = y.defined() ? through_tanh(grad, y) : grad;
    const int64_t cols = flat.dim(1);
    const bool biased = grads.size() > 2 && grads[2].defined();
    if (grads[1].defined() || biased)
      add_weight_gradient(w, from.data(), g.data(), cols, grads[1].data(),
                          biased ? grads[2].data() : nullptr);
    if (!grads[0].defined()) return;
    const Windows back{w.batch, w.len, cols, w.kernel, w.kernel - 1 - w.before, w.lengths};
    multiply(back, g.data(), transposed(flat, w.kernel, w.width, cols), {.accumulate = true},
             grads[0].data());
  };
  if (bias.defined()) return custom_op(y, {x, weight, bias}, backward);
  return custom_op(y, {x, weight}, backward);
}

Cost window_product_cost(int64_t batch, int64_t len, int64_t in, int64_t out, int64_t kernel) {
  const auto rows = static_cast<double>(batch * len), depth = static_cast<double>(kernel * in),
             cols = static_cast<double>(out);
  const TilePlan plan = plan_of(batch, len, depth * cols);
  const auto work = static_cast<double>(plan.workers * edge_reals(kernel, in));
  return {.flops = 2 * rows * depth * cols,
          .bytes = sizeof(real) * (rows * static_cast<double>(in) + rows * cols + depth * cols),
          .peak_bytes = sizeof(real) * (rows * cols + work),
          .state_bytes = sizeof(real) * static_cast<double>(batch * (kernel - 1) * in)};
}

}  // namespace attn
