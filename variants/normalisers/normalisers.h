// Softmax's relatives: logits q·k/√d whose weights are normalised otherwise.
//   row_weights.h        rules that make weights of complete rows of logits
//   strip_attention.h    attention by such a rule, in strips of queries, and its decoder
//   entmax_rows.h        entmax and sparsemax, arXiv:1905.05702
//   differential_rows.h  the difference of two softmaxes, arXiv:2410.05258
//   head_mixing.h        logits and weights mixed over heads, arXiv:2003.02436
//   row_scale.h          rows of queries, keys or outputs over their RMS or ℓ2 norm
// Time 4·d FLOPs a visible pair, memory n·d.
// Internal: strip_problem.h, row_gain.h.
#pragma once

#include "variants/normalisers/differential_rows.h"
#include "variants/normalisers/entmax_rows.h"
#include "variants/normalisers/head_mixing.h"
#include "variants/normalisers/row_scale.h"
#include "variants/normalisers/row_weights.h"
#include "variants/normalisers/strip_attention.h"
