// A filter as long as the sequence, of few weights: a small network of the distance, times a window
// that decays. Poli et al. 2023, arXiv:2302.10866, section 3.3. 2·hidden·(inputs + 2·hidden +
// width) FLOPs a tap.
#pragma once

#include <cstdint>
#include <vector>

#include "core/autograd/var.h"

namespace attn {

// h(t) = window(t) ⊙ W_out·sin(ω ⊙ (W_i·… sin(ω ⊙ (W_in·e(t) + b)) … + b_i)), window(t) =
// e^(-|t|/longest·δ_c), e(t) = [t/longest, cos and sin of 2πk·t/(longest + 1) for k = 1..bands].
struct ImplicitFilter {
  int64_t longest = 1;  // the largest distance, max_len - 1: it must not follow the length at hand
  struct Layer {
    Var weight, bias;  // [in, hidden], [hidden]
  };
  std::vector<Layer> layers;
  Var frequency;  // [hidden], of every sine
  Var out;        // [hidden, width]
};

// The taps of distances first, ..., first + count - 1: [count, width].
Var filter_taps(const ImplicitFilter& filter, int64_t first, int64_t count);

// Inputs of the first layer: the distance, and a cosine and a sine of each frequency.
inline int64_t filter_inputs(int64_t bands) { return 1 + 2 * bands; }

struct FilterSize {
  int64_t taps, bands, hidden, layers, width;
};
double filter_flops(const FilterSize& size);
// The largest size of the arrays that exist at once: the filter with and without its window, or the
// rows before and after a layer, and its packed weight.
double filter_peak_bytes(const FilterSize& size);

}  // namespace attn
