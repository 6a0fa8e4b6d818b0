// x·W + b over many rows, 2·rows·in·out FLOPs. The rows of x or of the result may be split into
// heads. The weight is packed once. The forward is one pass over tiles of rows; the backward
// computes both gradients in one pass.
#include <algorithm>

#include "core/autograd/tape.h"
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/ops/ops.h"
#include "core/simd/packed_weight.h"
#include "core/simd/rounded_product.h"
#include "core/simd/row_ops.h"
#include "core/simd/row_tiles.h"

namespace attn {
namespace {

// Rows of a tile: a multiple of the kernel's six, and enough that reading and writing a weight's
// gradient once a tile is hidden behind the tile's products.
constexpr int64_t kTile = 192;

struct Projection {
  RowLayout from, to;  // layouts of x and of the result
  Tensor x, weight;
  int64_t rows() const { return from.batch * from.len; }
  double multiply_adds() const {
    return static_cast<double>(rows()) * static_cast<double>(from.width) *
           static_cast<double>(to.width);
  }
  TilePlan plan() const { return plan_tiles(from.batch, from.len, kTile, multiply_adds()); }
};

// Workspace of each worker, for a tile of x and one of the result where they are split into heads.
class TileWork {
 public:
  TileWork(const Projection& p, const TilePlan& plan) {
    const int64_t height = std::min(plan.height, p.from.len);
    x_ = p.from.heads > 1 ? padded_reals(height * p.from.width) : 0;
    each_ = x_ + (p.to.heads > 1 ? padded_reals(height * p.to.width) : 0);
    if (each_ > 0)
      block_ = Block(static_cast<size_t>(plan.workers * each_) * sizeof(real), Purpose::workspace);
  }
  real* x(int64_t worker) const { return static_cast<real*>(block_.data()) + worker * each_; }
  real* result(int64_t worker) const { return x(worker) + x_; }

 private:
  Block block_;
  int64_t x_ = 0, each_ = 0;
};

void begin_rows(real* to, int64_t rows, int64_t width, const real* bias, const real* residual) {
  if (residual) std::copy_n(residual, rows * width, to);
  for (int64_t i = 0; bias && i < rows; ++i, to += width)
    for (int64_t j = 0; j < width; ++j) to[j] = residual ? to[j] + bias[j] : bias[j];
}

// out = x·W (+ bias) (+ residual); bias and residual only where the result is dense, null: none.
void project(const Projection& p, const real* bias, const real* residual, real* out) {
  const Mark mark(Part::projections);
  count_flops(2 * p.multiply_adds());
  const PackedWeight weight(p.weight, false);
  const TilePlan plan = p.plan();
  const TileWork work(p, plan);
  // Head by head where that leaves the kernel its full width, or x in the first-level cache.
  const bool straight =
      p.to.heads > 1 && (p.to.width / p.to.heads % kPanel == 0 || p.from.width <= kPanel);
  over_row_tiles(plan, [&](const RowTile& tile, int64_t w) {
    const real* const x = gather_rows(p.from, p.x.data(), tile, work.x(w));
    if (straight) {
      const int64_t dim = p.to.width / p.to.heads;
      for (int64_t h = 0; h < p.to.heads; ++h)
        weight.multiply(tile.count, {x, p.from.width, 1}, {0, p.from.width},
                        {h * dim, (h + 1) * dim}, head_rows(p.to, out, tile, h), dim, false);
      return;
    }
    const bool dense = p.to.heads == 1, begun = bias || residual;
    const int64_t at = tile.row * p.to.width;
    real* const to = dense ? out + at : work.result(w);
    if (begun) begin_rows(to, tile.count, p.to.width, bias, residual ? residual + at : nullptr);
    weight.multiply(tile.count, {x, p.from.width, 1}, to, p.to.width, begun);
    if (!dense) scatter_rows(p.to, out, tile, to, false);
  });
}

// Adds the gradients of weight and bias; dx is overwritten, or added to. Null: not wanted.
struct WantedGradients {
  real *weight = nullptr, *bias = nullptr, *x = nullptr;
  bool accumulate = false;
};
void project_back(const Projection& p, const real* g, const WantedGradients& wanted) {
  const Mark mark(Part::projections);
  const int64_t in = p.from.width, out = p.to.width;
  count_flops(2 * p.multiply_adds() * ((wanted.weight != nullptr) + (wanted.x != nullptr)));
  const PackedWeight transposed = wanted.x ? PackedWeight(p.weight, true) : PackedWeight();
  const TilePlan plan = p.plan();
  const int64_t workers = plan.workers;
  const TileWork work(p, plan);
  const WorkerSums weight(wanted.weight, in * out, workers), bias(wanted.bias, out, workers);
  parallel_for(workers, 1, [&](int64_t begin, int64_t end) {
    for (int64_t w = begin; w < end; ++w) {
      weight.clear(w);
      bias.clear(w);
    }
  });
  over_row_tiles(plan, [&](const RowTile& tile, int64_t w) {
    const real* const grad_rows = gather_rows(p.to, g, tile, work.result(w));
    if (wanted.bias) add_column_sums(bias.of(w), grad_rows, tile.count, out);
    if (wanted.weight) {
      const real* const x = gather_rows(p.from, p.x.data(), tile, work.x(w));
      for (int64_t j = 0; j < out; j += kPanel)
        add_mixed_product(in, std::min(kPanel, out - j), tile.count, {x, 1, in},
                          {grad_rows + j, out}, weight.of(w) + j, out);
    }
    if (!wanted.x) return;
    const bool dense = p.from.heads == 1;
    real* const dx = dense ? wanted.x + tile.row * in : work.x(w);
    transposed.multiply(tile.count, {grad_rows, out, 1}, dx, in, dense && wanted.accumulate);
    if (!dense) scatter_rows(p.from, wanted.x, tile, dx, wanted.accumulate);
  });
  weight.finish();
  bias.finish();
}

Var projected(const Var& x, const Var& weight, const Var& bias, const Var& residual, RowLayout from,
              RowLayout to, Shape shape) {
  const Projection p = {from, to, x.value(), weight.value()};
  const Tensor out(shape);
  project(p, bias.defined() ? bias.value().data() : nullptr,
          residual.defined() ? residual.value().data() : nullptr, out.data());
  const Var inputs[] = {x, weight, bias, residual};
  return record_op(out, inputs, [p](const Tensor& g, std::span<GradSlot> in) {
    WantedGradients wanted;
    if (in[1].needed()) wanted.weight = in[1].sum().data();
    if (in[2].needed()) wanted.bias = in[2].sum().data();
    if (in[0].needed()) wanted.x = in[0].target(wanted.accumulate).data();
    project_back(p, g.data(), wanted);
    if (in[3].needed()) in[3].give(g);
  });
}

}  // namespace

Var linear(const Var& x, const Var& weight, const Var& bias) {
  const bool fits =
      x.shape().rank() >= 1 && weight.shape().rank() == 2 && x.dim(-1) == weight.dim(0);
  ATTN_CHECK(fits, "linear: {} times {}", x.shape().str(), weight.shape().str());
  ATTN_CHECK(!bias.defined() || bias.shape() == Shape({weight.dim(1)}),
             "linear: bias {} for weight {}", bias.defined() ? bias.shape().str() : "",
             weight.shape().str());
  const int64_t in = weight.dim(0), out = weight.dim(1);
  const int64_t rows = x.shape().with(-1, 1).size();
  return projected(x, weight, bias, {}, {1, rows, in}, {1, rows, out}, x.shape().with(-1, out));
}

Var linear_to_heads(const Var& x, const Var& weight, int64_t heads) {
  const bool fits = x.shape().rank() == 3 && weight.shape().rank() == 2 &&
                    x.dim(2) == weight.dim(0) && heads >= 1 && weight.dim(1) % heads == 0;
  ATTN_CHECK(fits, "linear_to_heads: {} times {} into {} heads", x.shape().str(),
             weight.shape().str(), heads);
  const int64_t batch = x.dim(0), len = x.dim(1), in = weight.dim(0), out = weight.dim(1);
  return projected(x, weight, {}, {}, {batch, len, in}, {batch, len, out, heads},
                   {batch, heads, len, out / heads});
}

Var linear_from_heads(const Var& x, const Var& weight, const Var& residual) {
  const bool fits =
      x.shape().rank() == 4 && weight.shape().rank() == 2 && x.dim(1) * x.dim(3) == weight.dim(0);
  ATTN_CHECK(fits, "linear_from_heads: {} times {}", x.shape().str(), weight.shape().str());
  const int64_t batch = x.dim(0), heads = x.dim(1), len = x.dim(2);
  const int64_t in = weight.dim(0), out = weight.dim(1);
  ATTN_CHECK(!residual.defined() || residual.shape() == Shape({batch, len, out}),
             "linear_from_heads: residual {} for {} times {}",
             residual.defined() ? residual.shape().str() : "", x.shape().str(),
             weight.shape().str());
  return projected(x, weight, {}, residual, {batch, len, in, heads}, {batch, len, out},
                   {batch, len, out});
}

}  // namespace attn
