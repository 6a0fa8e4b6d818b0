// Factors of a state that decays in each channel, over the rows of a tile: running sums of
// log-decays, and exponentials of them both ways. About 45 operations a number.
#pragma once

#include <cstdint>

#include "core/base/real.h"

namespace attn {

// The sums of each column of x [rows, cols], rounded once; returns the least, and at most 0.
real column_totals(int64_t rows, int64_t cols, const real* x, real* totals);

// With G_i = -shift + the sum of the rows of x up to row i (a null shift [cols] is 0) and G_{-1} =
// -shift, |G| <= 60: decay [rows + 1, cols] is e^G_{-1}, e^G_0, ..., and grow [rows, cols] is
// e^-G_0, ... Sums of powers of 2 are rounded once.
void channel_factors(int64_t rows, int64_t cols, const real* x, const real* shift, real* decay,
                     real* grow);

}  // namespace attn
