// The cells of recurrences, and what they keep; what they do to a row is in attention_rows.h.
#pragma once

#include <cstdint>

#include "core/simd/attention_rows.h"

namespace attn {

enum class RecurrentCell { lstm, gru };

inline int64_t gates_of(RecurrentCell cell) { return cell == RecurrentCell::lstm ? 4 : 3; }
// Stretches of `dim` numbers that a row keeps for its backward: LSTM i f g o and c; GRU r z n, and
// what r is multiplied by.
inline int64_t kept_of(RecurrentCell cell) { return cell == RecurrentCell::lstm ? 5 : 4; }

}  // namespace attn
