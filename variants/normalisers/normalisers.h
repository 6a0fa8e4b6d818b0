// Softmax's relatives: logits q·k/√d whose weights are normalised otherwise.
//   sink.h               a logit without a value beside the keys: softmax × σ(L - s)
// Time 4·d FLOPs a visible pair, memory n·d.
#pragma once

#include "variants/normalisers/sink.h"
