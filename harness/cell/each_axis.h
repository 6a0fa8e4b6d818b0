// The list of axes, as members of Axes, in the order of a row. Private to harness/cell.
#pragma once

#include "harness/cell/key.h"

namespace attn {

template <class AnyAxes, class Visit>
void each_axis(AnyAxes& axes, Visit visit) {
  visit("length", axes.length);
  visit("batch", axes.batch);
  visit("heads", axes.heads);
  visit("kv_heads", axes.kv_heads);
  visit("head_dim", axes.head_dim);
  visit("dtype", axes.dtype);
  visit("kv_dtype", axes.kv_dtype);
  visit("workload", axes.workload);
  visit("arrivals", axes.arrivals);
  visit("packed", axes.packed);
  visit("mode", axes.mode);
  visit("scope", axes.scope);
  visit("layers", axes.layers);
  visit("equal", axes.equal);
  visit("causal", axes.causal);
  visit("threads", axes.threads);
  visit("seed", axes.seed);
  visit("input", axes.input);
  visit("input_scale", axes.input_scale);
  visit("repetitions", axes.repetitions);
}

}  // namespace attn
