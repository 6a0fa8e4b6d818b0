// base_conv against its equation written out over whole rows, and its decoder where steps are taken
// back.

#include "core/ops/ops.h"
#include "tests/variants/mixers.h"

namespace attn::base_conv_test {
namespace {

using namespace mixers;
using oracle::Array;

// (silu(Σ_j taps_j ⊙ u_{t-last+j}) ⊙ g)·W_o + b_o with u = x·W_c + b_c and g = x·W_g + b_g: each
// product of all rows at once, in other sums than those of the variant's own reference.
Array written_out(Array x, const std::vector<Array>& w, const std::vector<int64_t>& valid) {
  for (int64_t b = 0; b < x.batch && !valid.empty(); ++b)
    for (int64_t t = valid[static_cast<size_t>(b)]; t < x.len; ++t)
      std::fill_n(x.line(b, 0, t), x.dim, 0.0);
  const auto through = [&](const Array& rows, const Array& matrix, const Array& bias) {
    Array y(rows.batch, 1, rows.len, matrix.dim);
    for (int64_t b = 0; b < rows.batch; ++b)
      for (int64_t t = 0; t < rows.len; ++t)
        for (int64_t j = 0; j < matrix.dim; ++j) {
          double sum = bias.x[static_cast<size_t>(j)];
          for (int64_t c = 0; c < rows.dim; ++c)
            sum += rows.at(b, 0, t, c) * matrix.x[static_cast<size_t>(c * matrix.dim + j)];
          y.at(b, 0, t, j) = sum;
        }
    return y;
  };
  const Array u = through(x, w[0], w[1]), g = through(x, w[2], w[3]);
  const int64_t inner = u.dim, kernel = std::ssize(w[4].x) / inner;
  Array gated(x.batch, 1, x.len, inner);
  for (int64_t b = 0; b < x.batch; ++b)
    for (int64_t t = 0; t < x.len; ++t)
      for (int64_t c = 0; c < inner; ++c) {
        double sum = 0;
        for (int64_t j = std::max<int64_t>(0, kernel - 1 - t); j < kernel; ++j)
          sum += w[4].x[static_cast<size_t>(j * inner + c)] * u.at(b, 0, t - (kernel - 1) + j, c);
        gated.at(b, 0, t, c) = sum / (1 + std::exp(-sum)) * g.at(b, 0, t, c);
      }
  return through(gated, w[5], w[6]);
}

TEST(BaseConv, EqualsItsEquation) {
  for (const int64_t kernel : {1, 3, 4})
    for (const int64_t expansion : {1, 2})
      for (const Case& at : cases(true))
        expect_twin("base_conv", at, {{"kernel", kernel}, {"expansion", expansion}},
                    [&](const auto& x, const auto& w) { return written_out(x, w, at.lengths); });
}

TEST(BaseConv, IsCausalWithoutAMaskToo) {
  const Case at{1, 2, 9, 3, false, {}};
  const auto mixer = build("base_conv", at, {});
  draw_weights(*mixer);
  const Tensor x = Tensor::normal(at.rows(), rng(1, "x")), other = x.clone();
  for (int64_t i = 5 * 6; i < x.size(); ++i) other[i] += 1;
  const Tensor y = as_mixer(*mixer)->mix(Var(x)).value(),
               changed = as_mixer(*mixer)->mix(Var(other)).value();
  for (int64_t i = 0; i < 5 * 6; ++i) EXPECT_EQ(y[i], changed[i]);
  EXPECT_NE(y[5 * 6], changed[5 * 6]);
}

// A step that is taken back is replaced, also the first one.
TEST(BaseConv, AStepThatIsTakenBackIsReplaced) {
  const Case at{2, 2, 7, 3, true, {}};
  const auto mixer = build("base_conv", at, {});
  draw_weights(*mixer);
  const Tensor x = Tensor::normal(at.rows(), rng(1, "x"));
  const Tensor y = as_mixer(*mixer)->mix(Var(x), at.mask()).value();
  const auto decoder = mixer->decoder(2, 7);
  EXPECT_EQ(decoder->state_bytes(), 2 * 3 * 12 * static_cast<int64_t>(sizeof(real)));
  const Tensor row({2, 2, 1, 3}), wrong = Tensor::full({2, 2, 1, 3}, 3), out({2, 2, 1, 3});
  for (int64_t t = 0; t < 7; ++t) {
    decoder->step(wrong, wrong, wrong, out);
    decoder->step_back();
    for (int64_t b = 0; b < 2; ++b) std::copy_n(x.data() + (b * 7 + t) * 6, 6, row.data() + b * 6);
    decoder->step(row, row, row, out);
    for (int64_t i = 0; i < 12; ++i)
      EXPECT_NEAR(static_cast<double>(out[i]), static_cast<double>(y[(i / 6 * 7 + t) * 6 + i % 6]),
                  kIsDouble ? 1e-13 : 1e-5);
  }
}

}  // namespace
}  // namespace attn::base_conv_test
