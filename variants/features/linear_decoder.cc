// Updates the state by one position, or by many in one product; see linear_decoder.h. If the map
// has a log_scale, S and z are relative to its running maximum, as in the causal forward: they
// cannot overflow, and a larger maximum rescales them. So is the bound of a floored divisor.
#include "variants/features/linear_decoder.h"

#include <algorithm>
#include <vector>

#include "core/base/counters.h"
#include "core/base/workers.h"
#include "core/simd/product.h"
#include "core/simd/rows.h"
#include "variants/features/key_gates.h"
#include "variants/features/linear_chunks.h"

namespace attn {
namespace {

constexpr int64_t kChunk = 128;       // positions added to the state at a time
constexpr int64_t kDecodedRows = 96;  // rows of S updated and read while they are in L1: 24 KiB

class LinearDecoder final : public Decoder {
 public:
  LinearDecoder(const Shape& position, int64_t capacity, const FeatureMap& map, bool gated);

 private:
  void do_extend(const Tensor& k, const Tensor& v) override;
  void do_step(const real* q, const real* k, const real* v, real* out) override;
  int64_t do_state_bytes() const override {
    return static_cast<int64_t>(sizeof(real)) *
           (sums_.size() + normalizers_.size() +
            (running_max_.defined() ? running_max_.size() : 0) +
            (bounds_.defined() ? bounds_.size() : 0));
  }
  double do_step_flops() const override {
    const auto heads_of = static_cast<double>(heads()), m = static_cast<double>(features_),
               d = static_cast<double>(head_dim());
    const double rows = 1 + static_cast<double>(group());  // a key and the queries
    return heads_of * rows * (2 * m * (d + 1) + 2 * static_cast<double>(directions_) * d);
  }
  double do_step_bytes() const override {
    return 2 * static_cast<double>(do_state_bytes()) + direction_bytes();
  }
  double direction_bytes() const {  // an empty block of the pool still has bytes
    return directions_ > 0 ? static_cast<double>(panels_.bytes()) : 0;
  }

  // The maps of a head, of its queries and of its keys.
  struct Maps {
    RowFeatures queries, keys;
  };
  const Maps& maps_of(int64_t head) const {
    return maps_[static_cast<size_t>(head) % maps_.size()];
  }
  // What `rows` keys from position `at` add to M behind them, and their log_scale by gates.
  real gate_keys(int64_t head, int64_t at, int64_t rows, real* log_scale) const {
    if (!gated_) return 0;
    const Tensor& gate = gates()[0];
    return gate_scales(gate.data() + head * gate.dim(2) + at, rows, log_scale);
  }
  real* sum(int64_t head) const { return sums_.data() + head * features_ * head_dim(); }
  real* normalizer(int64_t head) const { return normalizers_.data() + head * features_; }
  real weigh(int64_t head, real* log_scale, int64_t rows, real* phi) const;
  void add_keys(int64_t head, int64_t at, int64_t rows, const Tensor& k, const Tensor& v,
                real* work) const;
  void step(int64_t head, const real* q, const real* k, const real* v, real* out,
            Tally& done) const;

  int64_t features_;
  int64_t directions_;  // 0: none
  // Of the next key. A step that is taken back stays in the sums, as a position of its own.
  int64_t position_ = 0;
  Divisor divisor_;
  bool gated_, has_positions_;
  int64_t panel_reals_;        // of the directions of one head and side
  int64_t sides_;              // 2 where keys have directions of their own
  Tensor sums_, normalizers_;  // S [heads, features, dim] and z [heads, features]
  Tensor running_max_;         // [heads], of log_scale; undefined without one
  Tensor bounds_;              // [heads], of a floored divisor; undefined without one
  Block panels_, work_;        // the maps' directions, packed; of a step, for each head
  std::vector<Maps> maps_;     // of each head of a batch entry
};

// What a step works on for each head: a key and the queries of its group, one below the other,
// their features and scales, and what rows of S are multiplied by.
struct StepLayout {
  int64_t rows, features, log_scale, factors, total;

  StepLayout(int64_t group, int64_t m, int64_t dim) {
    rows = 0;
    features = rows + padded_reals((1 + group) * dim);
    log_scale = features + padded_reals((1 + group) * m);
    factors = log_scale + padded_reals(1 + group);
    total = factors + padded_reals(kDecodedRows);
  }
};

LinearDecoder::LinearDecoder(const Shape& position, int64_t capacity, const FeatureMap& map,
                             bool gated)
    : Decoder(position, capacity, std::vector<int64_t>(gated ? 1 : 0, 1)),
      features_(map.features(head_dim())),
      directions_(map.omega.defined() ? map.omega.dim(1) : 0),
      divisor_(map.divisor()),
      gated_(gated),
      has_positions_(map.has_positions()),
      panel_reals_(RowFeatures::panel_reals(map)),
      sides_(map.key_omega.defined() ? 2 : 1),
      sums_(Tensor::zeros({heads(), features_, head_dim()})),
      normalizers_(Tensor::zeros({heads(), features_})) {
  map.check_fits(position);
  if (divisor_ == Divisor::floored) bounds_ = Tensor::zeros({heads()});
  if (map.has_log_scale() || gated) running_max_ = Tensor::full({heads()}, -kInfinity);
  const int64_t count = position[1];
  panels_ =
      Block(static_cast<size_t>(count * sides_ * panel_reals_) * sizeof(real), Purpose::workspace);
  const StepLayout layout(group(), features_, head_dim());
  work_ = Block(static_cast<size_t>(heads() * layout.total) * sizeof(real), Purpose::workspace);
  for (int64_t head = 0; head < count; ++head) {
    real* const panels = static_cast<real*>(panels_.data()) + head * sides_ * panel_reals_;
    const RowFeatures queries(map, head_dim(), head, panels);
    maps_.push_back({queries, queries.of_keys(map, head, panels + panel_reals_)});
  }
}

// Raises the running maximum of the head to the log_scale of `rows` keys and makes their features
// relative to it; overwrites log_scale. Returns the factor for the previous state.
real LinearDecoder::weigh(int64_t head, real* log_scale, int64_t rows, real* phi) const {
  if (!running_max_.defined()) return 1;
  const real before = running_max_[head],
             running_max = std::max(before, max_in_row(log_scale, rows));
  relative_scales(log_scale, running_max, 0, rows, log_scale);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t f = 0; f < features_; ++f) phi[i * features_ + f] *= log_scale[i];
  running_max_[head] = running_max;
  return scale_between(before, running_max);
}

void LinearDecoder::add_keys(int64_t head, int64_t at, int64_t rows, const Tensor& keys,
                             const Tensor& values, real* work) const {
  const int64_t dim = head_dim(), from = (head * keys.dim(2) + at) * dim;
  const real *const k = keys.data() + from, *const v = values.data() + from;
  real *const phi = work, *const log_scale = work + rows * features_,
              *const factors = log_scale + padded_reals(rows);
  maps_of(head).keys.make(k, position_ + at, rows, phi, features_, log_scale);
  const real shift = gate_keys(head, at, rows, log_scale);
  const real old = weigh(head, log_scale, rows, phi);
  std::fill_n(factors, features_, old);
  add_product(features_, dim, rows, {phi, 1, features_}, {v, dim}, sum(head), dim, factors);
  if (old != 1)
    for (int64_t f = 0; f < features_; ++f) normalizer(head)[f] *= old;
  add_column_sums(normalizer(head), phi, rows, features_);
  if (bounds_.defined()) bounds_[head] = bounds_[head] * old + sum_in_row(log_scale, rows);
  if (gated_) running_max_[head] += shift;
  count_flops(2 * static_cast<double>(rows * features_ * (dim + 1)));
}

void LinearDecoder::do_extend(const Tensor& k, const Tensor& v) {
  const int64_t len = k.dim(2);
  const int64_t reals = kChunk * features_ + padded_reals(kChunk) + features_;
  run_tasks(heads(), reals, [&](int64_t head, real* work) {
    for (int64_t i = 0; i < len; i += kChunk)
      add_keys(head, i, std::min(kChunk, len - i), k, v, work);
  });
  position_ += len;
}

void LinearDecoder::step(int64_t head, const real* q, const real* k, const real* v, real* out,
                         Tally& done) const {
  const int64_t dim = head_dim(), m = features_, queries = group();
  const StepLayout layout(queries, m, dim);
  real* const work = static_cast<real*>(work_.data()) + head * layout.total;
  real *const phi_k = work + layout.features, *const phi_q = phi_k + m,
              *const log_scale = work + layout.log_scale,  // a query's own divisor cancels
                  *const factors = work + layout.factors;
  std::copy_n(k, dim, work);
  std::copy_n(q, queries * dim, work + dim);
  const Maps& maps = maps_of(head);
  if (sides_ == 1 && !has_positions_) {
    maps.keys.make(work, position_, 1 + queries, phi_k, m, log_scale);  // counts its FLOPs
  } else {  // all queries of the group are at the same position
    maps.keys.make(work, position_, 1, phi_k, m, log_scale);
    for (int64_t i = 0; i < queries; ++i)
      maps.queries.make(work + (1 + i) * dim, position_, 1, phi_q + i * m, m);
  }
  // Heads of several sequences share their directions.
  if (directions_ > 0 && head < std::ssize(maps_)) done.moved<real>(sides_ * panel_reals_);
  const real shift = gate_keys(head, 0, 1, log_scale);
  const real old = weigh(head, log_scale, 1, phi_k);
  if (gated_) running_max_[head] += shift;
  std::fill_n(factors, kDecodedRows, old);
  std::fill_n(out, queries * dim, real(0));
  for (int64_t f = 0; f < m; f += kDecodedRows) {
    const int64_t rows = std::min(kDecodedRows, m - f);
    real* const part = sum(head) + f * dim;
    add_product(rows, dim, 1, {phi_k + f, 1}, {v, dim}, part, dim, factors);
    add_product(queries, dim, rows, {phi_q + f, m}, {part, dim}, out, dim);
    done.multiply_adds((1 + queries) * rows * dim);
    done.moved<real>(2 * rows * dim);
  }
  real* const z = normalizer(head);
  for (int64_t f = 0; f < m; ++f) z[f] = z[f] * old + phi_k[f];
  done.multiply_adds((1 + queries) * m);
  if (bounds_.defined()) bounds_[head] = bounds_[head] * old + *log_scale;
  done.moved<real>(2 * m + (running_max_.defined() ? 2 : 0) + (bounds_.defined() ? 2 : 0));
  for (int64_t i = 0; i < queries; ++i) {
    real total = row_dot(phi_q + i * m, z, m);
    if (bounds_.defined()) total = floored_normalizer(total, bounds_[head]);
    const real inverse = inverse_normalizer(total, divisor_);
    real* const row = out + i * dim;
    for (int64_t c = 0; c < dim; ++c) row[c] = inverse == 0 ? real(0) : row[c] * inverse;
  }
}

void LinearDecoder::do_step(const real* q, const real* k, const real* v, real* out) {
  const int64_t dim = head_dim(), queries = group();
  over_range(heads(), (1 + queries) / 2 * features_ * dim, [&](int64_t begin, int64_t end) {
    Tally done;
    for (int64_t head = begin; head < end; ++head)
      step(head, q + head * queries * dim, k + head * dim, v + head * dim,
           out + head * queries * dim, done);
  });
  ++position_;
}

}  // namespace

std::unique_ptr<Decoder> linear_decoder(const Shape& position, int64_t capacity,
                                        const FeatureMap& map, bool gated) {
  bool own = gated;
  for (const Var& omega : {map.omega, map.key_omega}) own |= omega.defined() && omega.dim(0) > 1;
  if (position[2] > 1 && own) return nullptr;
  return std::make_unique<LinearDecoder>(position, capacity, map, gated);
}

}  // namespace attn
