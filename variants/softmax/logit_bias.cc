// See logit_bias.h. Sums of gates are in double, and a strip rounds differences to a key of its
// own: float sums of a whole sequence would lose the digits of short distances. 2 operations a
// pair.
#include "variants/softmax/logit_bias.h"

#include <algorithm>
#include <array>
#include <numbers>

#include "core/base/check.h"
#include "core/base/marks.h"
#include "core/base/recycled.h"
#include "core/simd/rows.h"

namespace attn {
namespace {

constexpr int64_t kLanes = 16;

// In lanes, which the compiler makes vectors of.
double sum_of(const real* x, int64_t n) {
  std::array<real, kLanes> lanes = {};
  int64_t c = 0;
  for (; c + kLanes <= n; c += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[static_cast<size_t>(lane)] += x[c + lane];
  double sum = 0;
  for (; c < n; ++c) sum += static_cast<double>(x[c]);
  for (const real lane : lanes) sum += static_cast<double>(lane);
  return sum;
}

}  // namespace

std::shared_ptr<const LogitBias> LogitBias::of_gates(const Tensor& log_gates,
                                                     const std::vector<int64_t>& lengths) {
  const auto made = std::allocate_shared<LogitBias>(Recycled<LogitBias>(), LogitBias());
  made->heads_ = log_gates.dim(1), made->kv_len_ = log_gates.dim(2);
  made->lengths_ = lengths;
  const int64_t all = log_gates.dim(0) * made->heads_, len = made->kv_len_;
  made->sums_ = Block(static_cast<size_t>(std::max<int64_t>(1, all * len)) * sizeof(double),
                      Purpose::activations);
  auto* const sums = static_cast<double*>(made->sums_.data());
  for (int64_t head = 0; head < all; ++head) {
    const int64_t valid = lengths.empty() ? len : lengths[static_cast<size_t>(head / made->heads_)];
    double sum = 0;
    for (int64_t j = 0; j < len; ++j) {
      const double gate = j < valid ? static_cast<double>(log_gates[head * len + j]) : 0;
      sum += not_below_closed(gate) * std::numbers::log2e;
      sums[head * len + j] = sum;
    }
  }
  made->gates_ = sums;
  return made;
}

std::shared_ptr<const LogitBias> LogitBias::of_distances(const Tensor& table, int64_t kv_len) {
  const auto made = std::allocate_shared<LogitBias>(Recycled<LogitBias>(), LogitBias());
  made->heads_ = table.dim(0), made->kv_len_ = kv_len, made->distances_ = table.dim(1);
  made->table_ = Tensor(table.shape());
  for (int64_t i = 0; i < table.size(); ++i)
    made->table_[i] = table[i] * static_cast<real>(std::numbers::log2e);
  return made;
}

void LogitBias::add(const Tile& tile, real* logits) const {
  const Mark mark(Part::elementwise);
  if (gates_) return add_gates(tile, logits);
  const int64_t count = tile.keys.end - tile.keys.begin;
  for (int64_t r = 0; r < tile.rows; ++r) {
    const real* const from = row_of(tile.head, tile.position + r) + tile.keys.begin;
    real* const row = logits + r * tile.stride;
    ATTN_INDEPENDENT
    for (int64_t c = 0; c < count; ++c) row[c] += from[c];
  }
}

// c_i - c_j = (c_i - c_m) + (c_m - c_j) for a key m of the strip: where j <= m <= i, neither term
// is positive, and no digit is lost. Other pairs, of a strip on the diagonal, subtract in double.
void LogitBias::add_gates(const Tile& tile, real* logits) const {
  const double* const sums = gates_of(tile.head);
  const auto at = [&](int64_t i) { return sums[std::clamp<int64_t>(i, 0, kv_len_ - 1)]; };
  const int64_t first = tile.keys.begin, count = tile.keys.end - first;
  const int64_t middle = std::clamp(tile.position, first, tile.keys.end - 1);
  const int64_t before = middle + 1 - first;
  ATTN_DCHECK(before <= kMostKeys);
  std::array<real, kMostKeys> columns;
  for (int64_t c = 0; c < before; ++c)
    columns[static_cast<size_t>(c)] = static_cast<real>(sums[middle] - sums[first + c]);
  for (int64_t r = 0; r < tile.rows; ++r) {
    const double here = at(tile.position + r);
    const real add = static_cast<real>(here - sums[middle]);
    real* const row = logits + r * tile.stride;
    for (int64_t c = 0; c < before; ++c) row[c] += columns[static_cast<size_t>(c)] + add;
    for (int64_t c = before; c < count; ++c) row[c] += static_cast<real>(here - sums[first + c]);
  }
}

void LogitBias::add_gradient(const Tile& tile, const real* grads, double* sums) const {
  const Mark mark(Part::elementwise);
  if (gates_) return add_gate_gradient(tile, grads, sums);
  const int64_t count = tile.keys.end - tile.keys.begin;
  for (int64_t r = 0; r < tile.rows; ++r) {
    double* const to = sums + kv_len_ - 1 - tile.position - r + tile.keys.begin;
    const real* const row = grads + r * tile.stride;
    ATTN_INDEPENDENT
    for (int64_t c = 0; c < count; ++c) to[c] += static_cast<double>(row[c]);
  }
}

// The gate s gets the gradients of all pairs j < s <= i.
void LogitBias::add_gate_gradient(const Tile& tile, const real* grads, double* sums) const {
  const int64_t first = tile.keys.begin, count = tile.keys.end - first;
  ATTN_DCHECK(count <= kMostKeys);
  // Rows on the diagonal: queries before the last key.
  const int64_t below = std::clamp<int64_t>(tile.keys.end - 1 - tile.position, 0, tile.rows);
  for (int64_t r = 0; r < below; ++r) {
    double run = 0;
    for (int64_t j = first; j < tile.position + r; ++j) {
      run += static_cast<double>(grads[r * tile.stride + j - first]);
      sums[j + 1] += run;
    }
  }
  if (below == tile.rows) return;
  // The others are behind all keys: gates among the keys get sums of columns, gates among the
  // queries sums of rows, and gates between them the total.
  std::array<real, kMostKeys> columns;
  std::fill_n(columns.data(), count, real(0));
  double total = 0;
  for (int64_t r = tile.rows - 1; r >= below; --r) {
    const real* const row = grads + r * tile.stride;
    for (int64_t c = 0; c < count; ++c) columns[static_cast<size_t>(c)] += row[c];
    total += sum_of(row, count);
    if (r > below) sums[tile.position + r] += total;
  }
  for (int64_t s = tile.keys.end; s <= tile.position + below; ++s) sums[s] += total;
  double run = 0;
  for (int64_t c = 0; c + 1 < count; ++c) {
    run += static_cast<double>(columns[static_cast<size_t>(c)]);
    sums[first + c + 1] += run;
  }
}

void LogitBias::reduce(const double* sums, int64_t heads, int64_t parts, double factor,
                       const Tensor& grad) const {
  const int64_t size = gradient_size();
  for (int64_t head = 0; head < heads; ++head) {
    const int64_t valid =
        lengths_.empty() ? size : std::min(size, lengths_[static_cast<size_t>(head / heads_)]);
    real* const to = grad.data() + (gates_ ? head : head % heads_) * size;
    for (int64_t i = 0; i < valid; ++i) {
      double sum = 0;
      for (int64_t part = 0; part < parts; ++part) sum += sums[(head * parts + part) * size + i];
      to[i] += static_cast<real>(factor * sum);
    }
  }
}

}  // namespace attn
