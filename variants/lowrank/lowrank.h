// Keys and values projected along the sequence, from n rows to `rank` rows: Wang et al. 2020,
// arXiv:2006.04768, eq. 7. Softmax attention to the projected rows is variants/softmax/softmax.h.
//   sequence_projection.h  the projection and its gradients, 2·n·rank·d FLOPs
#pragma once

#include "variants/lowrank/sequence_projection.h"
