// gelu(x·U + b)·D + c over many rows as one fused op, 2·rows·hidden·(in + out) FLOPs. A tile of
// rows and a block of hidden columns are computed at a time and stay in the second-level cache.
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

// How the work is cut, so that two buffers of tile × stretch (200 KiB each) stay in the
// second-level cache: wide weights do not, and are read and their gradients written less often by
// taller tiles.
struct Cut {
  int64_t tile, stretch;  // rows and hidden columns
};
Cut cut_for(int64_t in, int64_t out) { return in + out <= 256 ? Cut{192, 256} : Cut{384, 128}; }
constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(real));

struct FeedForward {
  Tensor x;  // [rows, in]
  Tensor up, up_bias, down, down_bias;
  Tensor before;  // [rows, hidden] x·up, without its bias; kept for the backward
  int64_t rows, in, hidden, out;
  Cut cut;

  double multiply_adds() const {  // of one product
    return static_cast<double>(rows) * static_cast<double>(hidden) * static_cast<double>(in + out);
  }
  TilePlan plan() const { return plan_tiles(1, rows, cut.tile, multiply_adds()); }
  // Rows of a buffer lie an odd number of cache lines apart, so that a column of them does not fall
  // into few sets of the cache.
  int64_t buffer_row() const { return cut.stretch + kLine; }
  Block buffers(int64_t count) const {
    const int64_t reals = count * std::min(cut.tile, rows) * buffer_row();
    return Block(static_cast<size_t>(reals) * sizeof(real), Purpose::workspace);
  }
  real* buffer(const Block& block, int64_t i) const {
    return static_cast<real*>(block.data()) + i * std::min(cut.tile, rows) * buffer_row();
  }
};

void forward(const FeedForward& f, const real* residual, real* y) {
  const Mark mark(Part::feed_forward);
  count_flops(2 * f.multiply_adds());
  const PackedWeight up(f.up, false), down(f.down, false);
  const TilePlan plan = f.plan();
  const int64_t workers = plan.workers;
  const bool keep = f.before.defined();
  const Block buffers = f.buffers(workers * (keep ? 1 : 2));
  over_row_tiles(plan, [&](const RowTile& tile, int64_t w) {
    const RowBlock after = {f.buffer(buffers, w), f.buffer_row()};
    real* const to = y + tile.row * f.out;
    for (int64_t i = 0; i < tile.count; ++i)
      for (int64_t j = 0; j < f.out; ++j)
        to[i * f.out + j] =
            f.down_bias[j] + (residual ? residual[(tile.row + i) * f.out + j] : real(0));
    for (int64_t h = 0; h < f.hidden; h += f.cut.stretch) {
      const int64_t n = std::min(f.cut.stretch, f.hidden - h);
      const RowBlock before = keep ? RowBlock{f.before.data() + tile.row * f.hidden + h, f.hidden}
                                   : RowBlock{f.buffer(buffers, workers + w), f.buffer_row()};
      up.multiply(tile.count, {f.x.data() + tile.row * f.in, f.in, 1}, {0, f.in}, {h, h + n},
                  before.data, before.row, false);
      gelu_rows(tile.count, n, before, f.up_bias.data() + h, after);
      down.multiply(tile.count, {after.data, after.row, 1}, {h, h + n}, {0, f.out}, to, f.out,
                    true);
    }
  });
}

// Where the gradients are added; dx may be overwritten instead. Null: not wanted.
struct Wanted {
  real *up = nullptr, *up_bias = nullptr, *down = nullptr, *down_bias = nullptr, *x = nullptr;
  bool accumulate = false;
  bool before() const { return up || up_bias || x; }  // the gradient of `before`
};

class FeedForwardGradient {
 public:
  FeedForwardGradient(const FeedForward& f, const real* g, const Wanted& wanted)
      : f_(f),
        g_(g),
        wanted_(wanted),
        plan_(f.plan()),
        buffers_(f.buffers(2 * plan_.workers)),
        up_(wanted.up, f.in * f.hidden, plan_.workers),
        up_bias_(wanted.up_bias, f.hidden, plan_.workers),
        down_(wanted.down, f.hidden * f.out, plan_.workers),
        down_bias_(wanted.down_bias, f.out, plan_.workers) {
    if (wanted.x) up_transposed_ = PackedWeight(f.up, true);
    if (wanted.before()) down_transposed_ = PackedWeight(f.down, true);
  }

  void run() const {
    const double in = static_cast<double>(f_.in), out = static_cast<double>(f_.out);
    count_flops(2 * static_cast<double>(f_.rows) * static_cast<double>(f_.hidden) *
                (in * ((wanted_.up != nullptr) + (wanted_.x != nullptr)) +
                 out * ((wanted_.down != nullptr) + wanted_.before())));
    parallel_for(plan_.workers, 1, [&](int64_t begin, int64_t end) {
      for (int64_t w = begin; w < end; ++w)
        for (const WorkerSums* sums : {&up_, &up_bias_, &down_, &down_bias_}) sums->clear(w);
    });
    over_row_tiles(plan_, [&](const RowTile& tile, int64_t w) {
      if (wanted_.down_bias)
        add_column_sums(down_bias_.of(w), g_ + tile.row * f_.out, tile.count, f_.out);
      for (int64_t h = 0; h < f_.hidden; h += f_.cut.stretch)
        stretch(tile, w, {h, std::min(h + f_.cut.stretch, f_.hidden)});
    });
    for (const WorkerSums* sums : {&up_, &up_bias_, &down_, &down_bias_}) sums->finish();
  }

 private:
  void stretch(const RowTile& tile, int64_t w, Span columns) const {
    const int64_t rows = tile.count, h = columns.begin, n = columns.size();
    const real *const x = f_.x.data() + tile.row * f_.in, *const g = g_ + tile.row * f_.out;
    const RowBlock before = {f_.before.data() + tile.row * f_.hidden + h, f_.hidden};
    const RowBlock after = {f_.buffer(buffers_, 2 * w), f_.buffer_row()};
    const RowBlock grad_hidden = {f_.buffer(buffers_, 2 * w + 1), f_.buffer_row()};
    const real* const bias = f_.up_bias.data() + h;
    if (wanted_.before()) {
      down_transposed_.multiply(rows, {g, f_.out, 1}, {0, f_.out}, columns, grad_hidden.data,
                                grad_hidden.row, false);
      gelu_rows(rows, n, before, bias, after, grad_hidden);
    } else {
      gelu_rows(rows, n, before, bias, after);
    }
    if (wanted_.down)
      for (int64_t j = 0; j < f_.out; j += kPanel)
        add_mixed_product(n, std::min(kPanel, f_.out - j), rows, {after.data, 1, after.row},
                          {g + j, f_.out}, down_.of(w) + h * f_.out + j, f_.out);
    if (wanted_.up)
      for (int64_t j = 0; j < n; j += kPanel)
        add_mixed_product(f_.in, std::min(kPanel, n - j), rows, {x, 1, f_.in},
                          {grad_hidden.data + j, grad_hidden.row}, up_.of(w) + h + j, f_.hidden);
    if (wanted_.up_bias)
      add_column_sums(up_bias_.of(w) + h, grad_hidden.data, rows, n, grad_hidden.row);
    if (wanted_.x)
      up_transposed_.multiply(rows, {grad_hidden.data, grad_hidden.row, 1}, columns, {0, f_.in},
                              wanted_.x + tile.row * f_.in, f_.in, wanted_.accumulate || h > 0);
  }

  const FeedForward& f_;
  const real* g_;
  const Wanted& wanted_;
  TilePlan plan_;
  Block buffers_;
  WorkerSums up_, up_bias_, down_, down_bias_;
  PackedWeight up_transposed_, down_transposed_;
};

}  // namespace

Var feed_forward(const Var& x, const FeedForwardWeights& weights, const Var& residual) {
  const auto& [up, up_bias, down, down_bias] = weights;
  bool fits = x.shape().rank() >= 1 && up.shape().rank() == 2 && down.shape().rank() == 2;
  fits = fits && x.dim(-1) == up.dim(0) && up.dim(1) == down.dim(0) && up.dim(1) >= 1 &&
         up_bias.shape() == Shape({up.dim(1)}) && down_bias.shape() == Shape({down.dim(1)});
  ATTN_CHECK(fits, "feed_forward: {} through {} + {} and {} + {}", x.shape().str(),
             up.shape().str(), up_bias.shape().str(), down.shape().str(), down_bias.shape().str());
  const Shape shape = x.shape().with(-1, down.dim(1));
  ATTN_CHECK(!residual.defined() || residual.shape() == shape, "feed_forward: residual {} for {}",
             residual.defined() ? residual.shape().str() : "", shape.str());
  const Var inputs[] = {x, up, up_bias, down, down_bias, residual};
  FeedForward f;
  f.x = x.value(), f.up = up.value(), f.up_bias = up_bias.value();
  f.down = down.value(), f.down_bias = down_bias.value();
  f.rows = x.shape().with(-1, 1).size();
  f.in = up.dim(0), f.hidden = up.dim(1), f.out = down.dim(1);
  f.cut = cut_for(f.in, f.out);
  if (recording(inputs)) f.before = Tensor({f.rows, f.hidden});
  const Tensor y(shape);
  forward(f, residual.defined() ? residual.value().data() : nullptr, y.data());
  return record_op(y, inputs, [f](const Tensor& g, std::span<GradSlot> in) {
    Wanted wanted;
    if (in[1].needed()) wanted.up = in[1].sum().data();
    if (in[2].needed()) wanted.up_bias = in[2].sum().data();
    if (in[3].needed()) wanted.down = in[3].sum().data();
    if (in[4].needed()) wanted.down_bias = in[4].sum().data();
    if (in[0].needed()) wanted.x = in[0].target(wanted.accumulate).data();
    const Mark mark(Part::feed_forward);
    FeedForwardGradient(f, g.data(), wanted).run();
    if (in[5].needed()) in[5].give(g);
  });
}

}  // namespace attn
