// The workspace of a forward of linear attention, which holds one state and one chunk.
#pragma once

#include <cstdint>

#include "core/base/workspace.h"
#include "core/simd/product.h"
#include "variants/features/linear_chunks.h"

namespace attn {

// The parts of a worker's workspace.
struct LinearForwardLayout {
  explicit LinearForwardLayout(const LinearProblem& p) {
    panels = parts.take(RowFeatures::panel_reals(p.map));
    key_panels = p.map.key_omega.defined() ? parts.take(RowFeatures::panel_reals(p.map)) : panels;
    keys = parts.take(p.feature_reals());
    queries = p.causal ? parts.take(p.feature_reals()) : keys;
    log_scale = parts.take(p.chunk());
    shift = parts.take(p.gated ? 1 : 0);
    scales = parts.take(p.chunk());
    values = parts.take(p.scaled ? p.chunk() * p.dim : 0);
    normalizer = parts.take(p.chunk());
    packed_keys = parts.take(p.causal ? packed_reals(p.chunk(), p.features) : 0);
    weights = parts.take(p.causal ? LinearProblem::kChunkStrip * p.chunk() : 0);
    rescale = parts.take(p.causal ? LinearProblem::kChunkStrip : 0);
    state = parts.take(p.state_reals());
  }
  WorkspaceParts parts;
  int64_t panels, key_panels, keys, queries, log_scale, shift, scales, values, normalizer,
      packed_keys, weights, rescale, state;
};

}  // namespace attn
