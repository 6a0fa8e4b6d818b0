// LSTM and GRU cells: the sizes of their rows. The equations are in attention_rows.h.
#pragma once

#include <cstdint>

#include "core/simd/attention_rows.h"

namespace attn {

enum class RecurrentCell { lstm, gru };

inline int64_t gates_of(RecurrentCell cell) { return cell == RecurrentCell::lstm ? 4 : 3; }
// Vectors of `dim` numbers that each row saves for the backward: LSTM i f g o and c; GRU r z n, and
// the factor of r in n.
inline int64_t saved_of(RecurrentCell cell) { return cell == RecurrentCell::lstm ? 5 : 4; }

}  // namespace attn
