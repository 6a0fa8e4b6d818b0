// Attention to a window and to rows that stand for blocks, in one softmax, the slow, obvious way:
// in double, one sum after the other.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <vector>

#include "variants/reference/attention.h"
#include "variants/reference/selection.h"

namespace oracle {

// Rows of blocks of `stride` positions.
struct GatedRows {
  Index stride;
  bool overlap;
  const Array* position;  // [1, heads, slots, d]
};

// RMSNorm(Σ_s softmax_s(logits_s + position_s) ⊙ x_s)·gain of each whole block within lengths[b];
// gain [1, 1, heads, d]. The logits of a position are those of its own block, then, with overlap,
// those of the block after it.
inline Array gated_rows(const GatedRows& by, const Array& x, const Array& logits, const Array& gain,
                        const std::vector<Index>& lengths) {
  const Index d = x.dim;
  Array out(x.batch, x.heads, std::max<Index>(1, x.len / by.stride), d);
  for (Index b = 0; b < x.batch; ++b)
    for (Index h = 0; h < x.heads; ++h) {
      const Index valid = lengths.empty() ? x.len : lengths[static_cast<std::size_t>(b)];
      for (Index i = 0; (i + 1) * by.stride <= valid; ++i) {
        double square = 0;
        for (Index c = 0; c < d; ++c) {
          std::vector<double> terms, values;
          for (Index t = 0; t < by.stride; ++t) {
            const Index at = i * by.stride + t;
            terms.push_back(logits.at(b, h, at, c) + by.position->at(0, h, t, c));
            values.push_back(x.at(b, h, at, c));
            if (!by.overlap || i == 0) continue;
            terms.push_back(logits.at(b, h, at - by.stride, d + c) +
                            by.position->at(0, h, by.stride + t, c));
            values.push_back(x.at(b, h, at - by.stride, c));
          }
          const double top = *std::max_element(terms.begin(), terms.end());
          double sum = 0, total = 0;
          for (std::size_t s = 0; s < terms.size(); ++s) {
            total += std::exp(terms[s] - top);
            sum += std::exp(terms[s] - top) * (values[s] - values[0]);
          }
          const double mean =
              values[0] + sum / total;  // of equal values that value, without rounding
          out.at(b, h, i, c) = mean;
          square += std::pow(mean, 2) / static_cast<double>(d);
        }
        for (Index c = 0; c < d; ++c)
          out.at(b, h, i, c) *= gain.at(0, 0, h, c) / std::sqrt(square + 1e-6);
      }
    }
  return out;
}

struct WindowAndRows {
  Index window = 0, stride = 1;
  Index keep = 0;                // rows that a query sees, those of the largest scores; 0: all
  OfPair score;                  // of a query and a row
  const Array* sinks = nullptr;  // [1, 1, 1, heads]
};

// One softmax over the keys of the window, the rows of blocks that ended at the query's position or
// before, and the sink, which has no value. Zeros from lengths[b] on.
inline Array window_and_rows(const Array& q, const Array& k, const Array& v, const Array& row_keys,
                             const Array& row_values, const WindowAndRows& o,
                             const std::vector<Index>& lengths,
                             const std::vector<Index>& rows = {}) {
  const double tau = 1 / std::sqrt(static_cast<double>(q.dim));
  Array out(q.batch, q.heads, q.len, q.dim);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h)
      for (const Index i : wanted_rows(rows, q.len)) {
        const Index valid = lengths.empty() ? q.len : lengths[static_cast<std::size_t>(b)];
        if (i >= valid) continue;
        std::vector<std::pair<double, const double*>> terms;  // a logit and a value
        for (Index j = std::max<Index>(0, i - o.window); j <= i && j < valid; ++j)
          terms.emplace_back(tau * dot(q.row(b, h, i), k.row(b, h, j)), v.line(b, h, j));
        std::vector<std::pair<double, Index>> scores;
        for (Index r = 0; (r + 1) * o.stride <= std::min(i + 1, valid); ++r)
          scores.emplace_back(o.keep > 0 ? o.score(b, h, i, r) : 0, r);
        const Index keep = o.keep > 0 ? o.keep : static_cast<Index>(scores.size());
        for (const Index r : largest(scores, keep))
          terms.emplace_back(tau * dot(q.row(b, h, i), row_keys.row(b, h, r)),
                             row_values.line(b, h, r));
        double top = o.sinks ? o.sinks->at(0, 0, 0, h) : -INFINITY;
        for (const auto& [logit, value] : terms) top = std::fmax(top, logit);
        double total = o.sinks ? std::exp(o.sinks->at(0, 0, 0, h) - top) : 0;
        for (const auto& [logit, value] : terms) {
          total += std::exp(logit - top);
          add_times(std::exp(logit - top), value, out.line(b, h, i), q.dim);
        }
        for (Index c = 0; total > 0 && c < q.dim; ++c) out.at(b, h, i, c) /= total;
      }
  return out;
}

}  // namespace oracle
