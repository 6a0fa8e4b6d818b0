// Feature maps by name, and the op of their features: one task for each block of rows; only φ is
// saved.
#include "variants/features/feature_maps.h"

#include <algorithm>
#include <numbers>
#include <vector>

#include "core/base/check.h"
#include "core/base/workers.h"
#include "variants/features/row_features.h"

namespace attn {

FeatureMap elu_plus_one() { return {.kind = FeatureMap::Kind::elu}; }

FeatureMap positive_random(const Tensor& omega, double scale) {
  return {.kind = FeatureMap::Kind::positive, .omega = Var(omega), .number = scale};
}

FeatureMap trigonometric_random(const Tensor& omega, double scale) {
  return {.kind = FeatureMap::Kind::waves, .omega = Var(omega), .number = scale};
}

FeatureMap relu_random(const Tensor& omega, double epsilon) {
  return {.kind = FeatureMap::Kind::relu, .omega = Var(omega), .number = epsilon};
}

FeatureMap relu_plain(double epsilon) {
  return {.kind = FeatureMap::Kind::relu, .number = epsilon};
}

FeatureMap unit_waves(const Var& omega, bool learned) {
  return {.kind = FeatureMap::Kind::waves,
          .omega = omega,
          .number = 1,
          .unit_rows = true,
          .learned = learned};
}

FeatureMap cosine_weighted(int64_t span) {
  return {.kind = FeatureMap::Kind::cosine,
          .number = std::numbers::pi / 2 / static_cast<double>(span)};
}

FeatureMap taylor_map(const Var& omega, const Var& key_omega) {
  return {
      .kind = FeatureMap::Kind::taylor, .omega = omega, .key_omega = key_omega, .learned = true};
}

FeatureMap softmax_pair(const Var& omega, const Var& key_omega) {
  return {.kind = FeatureMap::Kind::softmax_pair,
          .omega = omega,
          .key_omega = key_omega,
          .learned = true};
}

int64_t FeatureMap::features(int64_t dim) const {
  const int64_t count = directions(dim);
  if (kind == Kind::cosine || kind == Kind::waves || kind == Kind::softmax_pair) return 2 * count;
  return kind == Kind::taylor ? 1 + count + count * (count + 1) / 2 : count;
}

void FeatureMap::check_fits(const Shape& x) const {
  for (const Var& given : {omega, key_omega})
    ATTN_CHECK(
        !given.defined() || (given.shape().rank() == 3 && given.dim(1) == omega.dim(1) &&
                             given.dim(2) == x[3] && (given.dim(0) == 1 || given.dim(0) == x[1])),
        "directions {} do not fit {}", given.shape().str(), x.str());
}

namespace {

constexpr int64_t kRows = 256;  // of a task

struct Rows {
  int64_t head = 0;   // batch·heads + head
  int64_t first = 0;  // first row in its sequence
  int64_t at = 0;     // first row, counted over all heads
  int64_t count = 0;  // valid ones; those of the block behind them are padding
  int64_t padded = 0;
};

// body(rows, the map on them, workspace) over blocks of rows of x = [batch, heads, len, dim].
template <class Body>
void for_rows(const Tensor& x, const FeatureMap& map, Lengths lengths, int64_t reals,
              const Body& body) {
  const int64_t heads = x.dim(1), len = x.dim(2), blocks = (len + kRows - 1) / kRows;
  const int64_t panels = padded_reals(RowFeatures::panel_reals(map));
  run_tasks(x.dim(0) * heads * blocks, panels + reals, [&](int64_t task, real* work) {
    const int64_t head = task / blocks, first = task % blocks * kRows,
                  last = std::min(len, first + kRows);
    const int64_t valid = lengths.empty() ? len : lengths[static_cast<size_t>(head / heads)];
    const int64_t count = std::clamp<int64_t>(valid - first, 0, last - first);
    body(Rows{head, first, head * len + first, count, last - first - count},
         RowFeatures(map, x.dim(3), head % heads, work), work + panels);
  });
}

}  // namespace

Features features(const Var& x, const FeatureMap& map, Lengths lengths) {
  ATTN_CHECK(map.kind != FeatureMap::Kind::given, "features of {} are given already",
             x.shape().str());
  ATTN_CHECK(map.kind != FeatureMap::Kind::waves || map.unit_rows,
             "the log_scale of {} has a gradient, which this op does not pass on", x.shape().str());
  map.check_fits(x.shape());
  const Tensor xt = x.value();
  const int64_t d = xt.dim(3), m = map.features(d);
  const Tensor phi(xt.shape().with(3, m));
  const Tensor log_scale =
      map.has_log_scale() ? Tensor({xt.dim(0), xt.dim(1), xt.dim(2)}) : Tensor();
  for_rows(xt, map, lengths, 0, [&](const Rows& r, const RowFeatures& rows, real*) {
    real* const scales = log_scale.defined() ? log_scale.data() + r.at : nullptr;
    rows.make(xt.data() + r.at * d, r.first, r.count, phi.data() + r.at * m, m, scales);
    std::fill_n(phi.data() + (r.at + r.count) * m, r.padded * m, real(0));
    if (scales) std::fill_n(scales + r.count, r.padded, -kInfinity);
  });
  if (!recording({x})) return {Var(phi), log_scale};
  const std::vector<int64_t> kept(lengths.begin(), lengths.end());
  return {custom_op(phi, {x},
                    [xt, phi, map, kept, d, m](const Tensor& grad, std::span<Tensor> grads) {
                      const int64_t scratch = padded_reals(RowFeatures::scratch_reals(map, d));
                      for_rows(xt, map, kept, scratch + kRows * m,
                               [&](const Rows& r, const RowFeatures& rows, real* work) {
                                 real* const grad_phi = work + scratch;
                                 std::copy_n(grad.data() + r.at * m, r.count * m, grad_phi);
                                 rows.add_gradient({.x = xt.data() + r.at * d,
                                                    .phi = phi.data() + r.at * m,
                                                    .first = r.first,
                                                    .rows = r.count,
                                                    .grad_phi = grad_phi,
                                                    .phi_row = m,
                                                    .grad_x = grads[0].data() + r.at * d,
                                                    .grad_omega = nullptr,
                                                    .scratch = work});
                               });
                    }),
          log_scale};
}

}  // namespace attn
