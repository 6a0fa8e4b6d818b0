// The forward is one pass of prefix sums from the first row; the backward is one pass of suffix
// sums from the last row. See running_mean.h.
#include "variants/control/running_mean.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/recycled.h"
#include "core/base/workers.h"
#include "core/simd/rows.h"

namespace attn {
namespace {

constexpr int64_t kColumnStrip =
    256;  // columns of a task: whole kilobytes of a row, and sums that stay in L1
constexpr int64_t kColumnStripReals =
    kColumnStrip * static_cast<int64_t>(sizeof(double) / sizeof(real));

int64_t strips_of(int64_t width) { return (width + kColumnStrip - 1) / kColumnStrip; }

// Of each entry its sums, and how many rows they are of.
int64_t sums_bytes(int64_t batch, int64_t width) {
  return static_cast<int64_t>(sizeof(double)) * batch * (width + 1);
}

struct Means {
  int64_t batch, len, width;
  bool causal;
  std::vector<int64_t, Recycled<int64_t>> lengths;

  int64_t valid(int64_t entry) const {
    return lengths.empty() ? len : lengths[static_cast<size_t>(entry)];
  }
  // What the sum that row i sees is multiplied by.
  double share(int64_t entry, int64_t i) const {
    const int64_t count = causal ? std::min(i + 1, valid(entry)) : valid(entry);
    return count > 0 ? 1 / static_cast<double>(count) : 0;
  }
  // body(entry, first number of a strip in an entry, its columns, their sums, zeros)
  template <class Body>
  void over_strips(const Body& body) const {
    const Mark mark(Part::sums);
    const int64_t strips = strips_of(width);
    run_tasks(batch * strips, kColumnStripReals, [&](int64_t task, real* work) {
      double* const sums = reinterpret_cast<double*>(work);
      std::fill_n(sums, kColumnStrip, 0.0);
      const int64_t first = task % strips * kColumnStrip;
      body(task / strips, task / strips * len * width + first,
           std::min(kColumnStrip, width - first), sums);
    });
    count_flops(2 * static_cast<double>(batch * len * width));
  }
};

void add_row(double* sums, const real* row, int64_t n, double factor) {
  ATTN_INDEPENDENT
  for (int64_t c = 0; c < n; ++c) sums[c] += factor * static_cast<double>(row[c]);
}

// Adds `count` rows, `stride` apart. Four at a time: a sum that is loaded and stored for each row
// would wait for the store.
void add_rows(double* sums, const real* rows, int64_t count, int64_t stride, int64_t n) {
  for (; count >= 4; count -= 4, rows += 4 * stride) {
    const real *a = rows, *b = a + stride, *c = b + stride, *d = c + stride;
    ATTN_INDEPENDENT
    for (int64_t j = 0; j < n; ++j)
      sums[j] += (static_cast<double>(a[j]) + static_cast<double>(b[j])) +
                 (static_cast<double>(c[j]) + static_cast<double>(d[j]));
  }
  for (; count > 0; --count, rows += stride) add_row(sums, rows, n, 1);
}

// Without a causal mask all rows have one mean, which is rounded once.
using StripRow = std::array<real, kColumnStrip>;
StripRow scaled(const double* sums, int64_t n, double factor) {
  StripRow row{};
  for (int64_t c = 0; c < n; ++c) row[static_cast<size_t>(c)] = static_cast<real>(factor * sums[c]);
  return row;
}

void forward(const Means& m, const real* x, real* out) {
  m.over_strips([&](int64_t entry, int64_t at, int64_t n, double* sums) {
    const int64_t valid = m.valid(entry);
    if (!m.causal) {
      add_rows(sums, x + at, valid, m.width, n);
      const StripRow mean = scaled(sums, n, m.share(entry, 0));
      for (int64_t i = 0; i < m.len; ++i) std::copy_n(mean.data(), n, out + at + i * m.width);
      return;
    }
    for (int64_t i = 0; i < m.len; ++i) {
      if (i < valid) add_row(sums, x + at + i * m.width, n, 1);
      const double share = m.share(entry, i);
      real* const to = out + at + i * m.width;
      ATTN_INDEPENDENT
      for (int64_t c = 0; c < n; ++c) to[c] = static_cast<real>(share * sums[c]);
    }
  });
}

void backward(const Means& m, const real* g, real* dx) {
  m.over_strips([&](int64_t entry, int64_t at, int64_t n, double* sums) {
    const int64_t valid = m.valid(entry);
    const auto add_to = [&](int64_t j, const auto* row) {
      real* const to = dx + at + j * m.width;
      ATTN_INDEPENDENT
      for (int64_t c = 0; c < n; ++c) to[c] += static_cast<real>(row[c]);
    };
    if (!m.causal) {
      add_rows(sums, g + at, m.len, m.width, n);
      const StripRow each = scaled(sums, n, m.share(entry, 0));
      for (int64_t j = 0; j < valid; ++j) add_to(j, each.data());
      return;
    }
    for (int64_t j = m.len; j-- > 0;) {
      add_row(sums, g + at + j * m.width, n, m.share(entry, j));
      if (j < valid) add_to(j, sums);
    }
  });
}

class MeanDecoder final : public MixerDecoder {
 public:
  MeanDecoder(const Shape& position, int64_t capacity)
      : MixerDecoder(position, capacity),
        block_(static_cast<size_t>(do_state_bytes()), Purpose::activations) {
    std::fill_n(sums(0), batch() * (width() + 1), 0.0);
  }

 private:
  // Of a batch entry, and behind them how many rows they are of.
  double* sums(int64_t entry) const {
    return static_cast<double*>(block_.data()) + entry * (width() + 1);
  }
  void do_next(const real* x, real* out) override {
    const int64_t n = width();
    Tally done;
    for (int64_t b = 0; b < batch(); ++b) {
      add_row(sums(b), x + b * n, n, 1);
      const double count = sums(b)[n] += 1;
      for (int64_t c = 0; out && c < n; ++c) out[b * n + c] = static_cast<real>(sums(b)[c] / count);
      done.multiply_adds(n);  // a sum and a quotient
      done.moved<double>(2 * (n + 1));
    }
  }
  int64_t do_state_bytes() const override { return sums_bytes(batch(), width()); }
  double do_step_flops() const override { return 2 * static_cast<double>(batch() * width()); }
  double do_step_bytes() const override { return 2 * static_cast<double>(do_state_bytes()); }

  Block block_;
};

}  // namespace

Var running_mean(const Var& x, const Mask& mask) {
  const Means m{x.dim(0),
                x.dim(1),
                x.dim(2),
                mask.causal,  //
                {mask.kv_lengths.begin(), mask.kv_lengths.end()}};
  const Tensor out(x.shape());
  forward(m, x.value().data(), out.data());
  return custom_op(out, {x}, [m](const Tensor& grad, std::span<Tensor> grads) {
    if (grads[0].defined()) backward(m, grad.data(), grads[0].data());
  });
}

std::unique_ptr<Decoder> mean_decoder(const Shape& position, int64_t capacity) {
  return std::make_unique<MeanDecoder>(position, capacity);
}

Cost mean_cost(int64_t batch, int64_t len, int64_t width) {
  const double numbers = static_cast<double>(batch * len * width);
  const auto work =
      static_cast<double>(workspace_bytes(batch * strips_of(width), kColumnStripReals));
  return {.flops = 2 * numbers,
          .backward_flops = 2 * numbers,
          .bytes = 2 * sizeof(real) * numbers,
          .peak_bytes = sizeof(real) * numbers + work,
          .state_bytes = static_cast<double>(sums_bytes(batch, width))};
}

}  // namespace attn
