// Linear attention whose state decays by gates that depend on the data: o_t = τ·q_t·S_t with
// S_t = diag(a_t)·S_{t-1} + k_tᵀ·v_t, a state of head_dim² numbers a head, nothing normalised.
//   decayed_attention.h  forward, backward, cost and decoding, one position after the other: 5·n·d²
//                        FLOPs, memory n·d + d²
#pragma once

#include "variants/gated/decayed_attention.h"
