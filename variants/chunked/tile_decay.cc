// Exponentials of one tile; see tile_decay.h. Of n rows, n·(n + 3)/2 with one decay for all
// channels; with a decay for each, 2·n·m, or n·m·(n + 5)/2 where pairs are computed one by one.
#include "variants/chunked/tile_decay.h"

#include <cmath>

#include "core/base/marks.h"
#include "core/simd/channel_decay.h"
#include "core/simd/rows.h"

namespace attn {
namespace {

constexpr int64_t kRealsOfDouble = sizeof(double) / sizeof(real);

}  // namespace

TileDecay::Layout::Layout(const ChunkedProblem& p, WorkspaceParts& parts) {
  const int64_t rows = p.decay == Decay::none ? 0 : p.tile(), numbers = rows * p.decays();
  const bool channels = p.decay == Decay::channel;
  sums = parts.take((numbers + p.decays()) * kRealsOfDouble);
  rounded = parts.take(numbers);
  read = parts.take(numbers + (channels ? p.key_dim : 0));
  write = parts.take(numbers);
  total = parts.take(rows > 0 ? p.key_dim : 0);
  pairs = parts.take(channels ? 0 : rows * rows);
  pair_row = parts.take(channels ? numbers : 0);
  for (int64_t* const part : {&last, &shift, &lead, &tail})
    *part = parts.take(channels ? p.key_dim : 0);
  logs = parts.take(p.rule.of == LogDecay::Of::given ? 0 : numbers);
}

void TileDecay::set(const real* x, const HeadDecay& of, int64_t rows) {
  const Mark mark(Part::elementwise);
  logs_ = x;
  if (of.of != LogDecay::Of::given) {
    of.values((p_.decay == Decay::head ? 1 : rows) * p_.decays(), x, work_ + at_.logs);
    logs_ = work_ + at_.logs;
  }
  if (p_.decay == Decay::head) {
    if (rows == rows_ && *logs_ == head_decay_) return;
    head_decay_ = *logs_;
  }
  rows_ = rows;
  if (of_channels())
    set_channels();
  else
    set_rows();
}

void TileDecay::set_sums() {
  const int64_t width = p_.decays(), step = p_.decay == Decay::head ? 0 : width;
  std::fill_n(sum(-1), width, 0.0);
  for (int64_t i = 0; i < rows_; ++i) {
    const double* const before = sum(i - 1);
    double* const after = sum(i);
    for (int64_t c = 0; c < width; ++c)
      after[c] = before[c] + static_cast<double>(logs_[i * step + c]);
  }
}

void TileDecay::set_rows() {
  set_sums();
  const double* const sums = sum(0);
  const double last = sums[rows_ - 1];
  real *const rounded = work_ + at_.rounded, *const pairs = work_ + at_.pairs;
  for (int64_t i = 0; i < rows_; ++i) rounded[i] = static_cast<real>(*read_sum(i));
  exp_row(rows_, rounded, 1, 0, work_ + at_.read);
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
  real *const last = work_ + at_.last, *const total = work_ + at_.total;
  real *const shift = work_ + at_.shift, *const tail = work_ + at_.tail;
  real *const read = work_ + at_.read, *const write = work_ + at_.write;
  const real least = column_totals(rows_, m, logs_, last);
  constexpr auto kMost = static_cast<real>(kLargestFactor);
  factored_ = least >= -2 * kMost, shifted_ = factored_ && least < -kMost;
  exp_row(m, last, 1, 0, total);
  if (factored_) {
    for (int64_t c = 0; shifted_ && c < m; ++c) shift[c] = last[c] / 2;
    if (shifted_) exp_row(m, shift, 1, 0, work_ + at_.lead);
    for (int64_t c = 0; c < m; ++c) tail[c] = shifted_ ? last[c] - shift[c] : last[c];
    exp_row(m, tail, 1, 0, tail);
    return channel_factors(rows_, m, logs_, shifted_ ? shift : nullptr, read, write);
  }
  set_sums();
  const double* const end = sum(rows_ - 1);
  for (int64_t i = -1; i < rows_; ++i) {
    const double* const sums = sum(i);
    real *const seen = read + (i + 1) * m, *const held = write + i * m;
    for (int64_t c = 0; c < m; ++c) seen[c] = static_cast<real>(sums[c]);
    for (int64_t c = 0; i >= 0 && c < m; ++c) held[c] = static_cast<real>(end[c] - sums[c]);
  }
  exp_row((rows_ + 1) * m, read, 1, 0, read);
  exp_row(rows_ * m, write, 1, 0, write);
}

real* TileDecay::pair_row(int64_t i, int64_t count, bool erase) const {
  const int64_t m = p_.key_dim;
  const double* const from = erase && p_.removal ? sum(i - 1) : read_sum(i);
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
  for (int64_t i = 0; i < rows_; ++i) {
    ATTN_INDEPENDENT
    for (int64_t c = 0; c < m; ++c) out[i * m + c] = factors[i] * x[i * m + c];
  }
}

}  // namespace attn
