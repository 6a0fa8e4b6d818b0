// LSTM and GRU layers over the sequence: n·width² FLOPs for each gate, one position after the
// other.
//   recurrence.h      forward, backward and decoding
//   recurrent_cell.h  LSTM and GRU: numbers of gates and of saved values
#pragma once

#include "variants/recurrent/recurrence.h"
#include "variants/recurrent/recurrent_cell.h"
