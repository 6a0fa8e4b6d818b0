// A long convolution as sums of products, one after the other. See long_convolution.h.
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/rows.h"
#include "variants/convolution/convolution_strips.h"

namespace attn::long_convolutions {
namespace {

// to[i] += Σ_j filter[origin + sign·(i - j)]·from[j], i, j < count.
void add_sums(const Strip& s, const real* filter, const real* from, int64_t count, int64_t sign,
              real* to, Tally& done) {
  const int64_t row = s.p.dim, step = s.p.width();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = s.p.causal && sign < 0 ? i : 0,
                  end = s.p.causal && sign > 0 ? i + 1 : count;
    real sums[kLanes] = {};
    for (int64_t j = begin; j < end; ++j) {
      const real* const tap = filter + (s.p.origin() + sign * (i - j)) * step + s.column();
      const real* const value = from + j * row;
      if (s.lanes == kLanes) {
        ATTN_INDEPENDENT
        for (int64_t c = 0; c < kLanes; ++c) sums[c] += tap[c] * value[c];
      } else {
        for (int64_t c = 0; c < s.lanes; ++c) sums[c] += tap[c] * value[c];
      }
    }
    for (int64_t c = 0; c < s.lanes; ++c) to[i * row + c] += sums[c];
    done.multiply_adds((end - begin) * s.lanes);
  }
}

void add_tap_sums(const Strip& s, const real* x, const real* g, int64_t count, real* filter,
                  Tally& done) {
  const int64_t row = s.p.dim, step = s.p.width();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t end = s.p.causal ? i + 1 : count;
    for (int64_t j = 0; j < end; ++j) {
      real* const tap = filter + (s.p.origin() + i - j) * step + s.column();
      for (int64_t c = 0; c < s.lanes; ++c) tap[c] += g[i * row + c] * x[j * row + c];
    }
    done.multiply_adds(end * s.lanes);
  }
}

void add_skipped(const Strip& s, const real* from, const real* skip, int64_t count, real* to) {
  for (int64_t i = 0; skip && i < count; ++i)
    for (int64_t c = 0; c < s.lanes; ++c)
      to[i * s.p.dim + c] += skip[s.column() + c] * from[i * s.p.dim + c];
}

}  // namespace

void direct_forward(const Problem& p, const Arrays& a, real* out) {
  run_tasks(p.tasks(), 0, [&](int64_t task, real*) {
    const Mark mark(Part::products);
    const Strip s(p, task);
    Tally done;
    for (int64_t b = 0; b < p.batch; ++b) {
      add_sums(s, a.filter, a.x + s.at(b), p.valid(b), 1, out + s.at(b), done);
      add_skipped(s, a.x + s.at(b), a.skip, p.valid(b), out + s.at(b));
    }
  });
}

void direct_backward(const Problem& p, const Arrays& a, const Gradients& g) {
  run_tasks(p.tasks(), 0, [&](int64_t task, real*) {
    const Mark mark(Part::products);
    const Strip s(p, task);
    Tally done;
    for (int64_t b = 0; b < p.batch; ++b) {
      const int64_t valid = p.valid(b), at = s.at(b);
      if (g.x) {
        add_sums(s, a.filter, g.of_out + at, valid, -1, g.x + at, done);
        add_skipped(s, g.of_out + at, a.skip, valid, g.x + at);
      }
      if (g.filter) add_tap_sums(s, a.x + at, g.of_out + at, valid, g.filter, done);
      for (int64_t i = 0; g.skip && i < valid; ++i)
        for (int64_t c = 0; c < s.lanes; ++c)
          g.skip[s.column() + c] += g.of_out[at + i * p.dim + c] * a.x[at + i * p.dim + c];
    }
  });
}

}  // namespace attn::long_convolutions
