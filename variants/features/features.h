// Linear attention: φ(q)·(Σ φ(k)ᵀv) / φ(q)·(Σ φ(k)), Katharopoulos et al. 2020, arXiv:2006.16236,
// for any feature map φ.
//   feature_maps.h      elu + 1, random features of the softmax kernel (arXiv:2009.14794,
//                       2103.02143), cosines of the distance (2202.08791), Taylor polynomials
//                       (2402.18668), learned softmaxes (2402.04347)
//   linear_attention.h  forward, backward and cost; causal by prefix sums in chunks. 4·n·m·d FLOPs
//                       for m features, memory n·d + m·d
//   linear_decoder.h    decoding from a state of m·(d + 1) numbers a head
//   mimicry.h           cross-entropy to the weights of softmax, which fits learned features
// Internal: row_features.h, normalizer.h, key_gates.h, linear_chunks.h, forward_layout.h,
// linear_gradient.h, learned_gradients.h, running_maxima.h.
#pragma once

#include "variants/features/feature_maps.h"
#include "variants/features/linear_attention.h"
#include "variants/features/linear_decoder.h"
