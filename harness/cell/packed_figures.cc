// See packed_figures.h. One bootstrap where there is one visit, else O(n).
#include "harness/cell/packed_figures.h"

#include <numeric>

#include "harness/measure/packed_lengths.h"
#include "harness/measure/statistics.h"

namespace attn {

int64_t packed_positions(const Axes& axes) {
  const std::vector<int64_t> lengths =
      packed_lengths(*axes.packed, axes.batch.value(), axes.length.value(), 0);  // in any order
  return std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
}

PackedFigures packed_figures(const Axes& axes, const Summary& packed,
                             const std::vector<double>& packed_s,
                             const std::vector<double>& padded_s,
                             const std::vector<int64_t>& visits, uint64_t seed) {
  const int64_t tokens = packed_positions(axes), sequences = axes.batch.value();
  const auto useful = static_cast<double>(tokens);
  PackedFigures figures{.sequences = sequences,
                        .tokens = tokens,
                        .useful = useful / static_cast<double>(sequences * axes.length.value())};
  if (padded_s.empty()) return figures;
  figures.padded_time = summarize(padded_s, visits, seed);
  figures.padded_tokens_per_s = useful / figures.padded_time->median;
  figures.speedup = figures.padded_time->median / packed.median;
  if (const auto found = ratio_interval(padded_s, packed_s, visits, seed)) {
    figures.speedup_ci_low = found->low;
    figures.speedup_ci_high = found->high;
  }
  return figures;
}

}  // namespace attn
