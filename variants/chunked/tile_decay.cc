// Exponentials of one tile; see tile_decay.h. Of n rows, n·(n + 3)/2 with one decay for all
// channels; with a decay for each, 2·n·m, or n·m·(n + 5)/2 where pairs are computed one by one.
#include "variants/chunked/tile_decay.h"

#include <cmath>

#include "core/base/marks.h"
#include "core/simd/row_ops.h"

namespace attn {
namespace {

constexpr int64_t kRealsOfDouble = sizeof(double) / sizeof(real);

}  // namespace

TileDecay::Layout::Layout(const ChunkedProblem& p, WorkspaceParts& parts) {
  const int64_t rows = p.decay == Decay::none ? 0 : p.tile(), numbers = rows * p.decays();
  const bool channels = p.decay == Decay::channel;
  sums = parts.take((numbers + p.decays()) * kRealsOfDouble);
  rounded = parts.take(numbers);
  read = parts.take(numbers);
  write = parts.take(numbers);
  inverse = parts.take(channels ? numbers : 0);
  total = parts.take(rows > 0 ? p.key_dim : 0);
  pairs = parts.take(channels ? 0 : rows * rows);
  pair_row = parts.take(channels ? numbers : 0);
}

void TileDecay::set(const real* log_decay, int64_t rows) {
  const Mark mark(Part::elementwise);
  if (p_.decay == Decay::head) {
    if (rows == rows_ && *log_decay == head_decay_) return;
    head_decay_ = *log_decay;
  }
  rows_ = rows;
  const int64_t width = p_.decays(), step = p_.decay == Decay::head ? 0 : width;
  real* const rounded = work_ + at_.rounded;
  std::fill_n(sum(-1), width, 0.0);
  for (int64_t i = 0; i < rows; ++i) {
    const double* const before = sum(i - 1);
    double* const after = sum(i);
    for (int64_t c = 0; c < width; ++c)
      after[c] = before[c] + static_cast<double>(log_decay[i * step + c]);
    const double* const read = read_sum(i);
    for (int64_t c = 0; c < width; ++c) rounded[i * width + c] = static_cast<real>(read[c]);
  }
  exp_row(rows * width, rounded, 1, 0, work_ + at_.read);
  if (of_channels())
    set_channels();
  else
    set_rows();
}

void TileDecay::set_rows() {
  const double* const sums = sum(0);
  const double last = sums[rows_ - 1];
  real *const rounded = work_ + at_.rounded, *const pairs = work_ + at_.pairs;
  for (int64_t j = 0; j < rows_; ++j) rounded[j] = static_cast<real>(last - sums[j]);
  exp_row(rows_, rounded, 1, 0, work_ + at_.write);
  std::fill_n(work_ + at_.total, p_.key_dim, std::exp(static_cast<real>(last)));
  for (int64_t i = 0; i < rows_; ++i) {
    const double from = *read_sum(i);
    const int64_t count = p_.bonus ? i : i + 1;
    real* const row = pairs + i * p_.tile();
    for (int64_t j = 0; j < count; ++j) row[j] = static_cast<real>(from - sums[j]);
    exp_row(count, row, 1, 0, row);
  }
}

void TileDecay::set_channels() {
  const int64_t m = p_.key_dim;
  const double* const last = sum(rows_ - 1);
  real *const rounded = work_ + at_.rounded, *const total = work_ + at_.total;
  real *const inverse = work_ + at_.inverse, *const write = work_ + at_.write;
  double least = 0;
  for (int64_t c = 0; c < m; ++c) least = std::min(least, last[c]);
  factored_ = least >= -kLargestFactor;
  for (int64_t c = 0; c < m; ++c) rounded[c] = static_cast<real>(last[c]);
  exp_row(m, rounded, 1, 0, total);
  for (int64_t i = 0; i < rows_; ++i) {
    const double* const sums = sum(i);
    real* const row = rounded + i * m;
    if (factored_)
      for (int64_t c = 0; c < m; ++c) row[c] = static_cast<real>(sums[c]);
    else
      for (int64_t c = 0; c < m; ++c) row[c] = static_cast<real>(last[c] - sums[c]);
  }
  if (!factored_) return static_cast<void>(exp_row(rows_ * m, rounded, 1, 0, write));
  exp_row(rows_ * m, rounded, -1, 0, inverse);
  for (int64_t i = 0; i < rows_; ++i)
    for (int64_t c = 0; c < m; ++c) write[i * m + c] = inverse[i * m + c] * total[c];
}

real* TileDecay::pair_row(int64_t i, int64_t count) const {
  const int64_t m = p_.key_dim;
  const double* const from = read_sum(i);
  real* const out = work_ + at_.pair_row;
  for (int64_t j = 0; j < count; ++j) {
    const double* const sums = sum(j);
    for (int64_t c = 0; c < m; ++c) out[j * m + c] = static_cast<real>(from[c] - sums[c]);
  }
  exp_row(count * m, out, 1, 0, out);
  return out;
}

void TileDecay::scale(const real* x, const real* factors, real* out) const {
  const Mark mark(Part::elementwise);
  const int64_t m = p_.key_dim;
  if (of_channels()) {
    for (int64_t i = 0; i < rows_ * m; ++i) out[i] = x[i] * factors[i];
    return;
  }
  for (int64_t i = 0; i < rows_; ++i)
    for (int64_t c = 0; c < m; ++c) out[i * m + c] = factors[i] * x[i * m + c];
}

}  // namespace attn
