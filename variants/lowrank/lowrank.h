// Projection of keys and values along the sequence, from n rows to `rank` rows: Wang et al. 2020,
// arXiv:2006.04768, eq. 7. variants/softmax/softmax.h computes attention to the projected rows.
//   sequence_projection.h  the projection and its gradients, 2·n·rank·d FLOPs
#pragma once

#include "variants/lowrank/sequence_projection.h"
