// A row of speed as the tests of tables need it: 4 heads of 64, attention alone, one thread.
#pragma once

#include "harness/tables/table.h"

namespace attn {

inline Row speed_row_of(const Plugin& variant, int64_t length, const SpeedMetrics& metrics,
                        Mode mode = Mode::forward) {
  Row row;
  row.key.measure = Measure::speed;
  row.key.variant = variant;
  row.key.axes = {.length = length,
                  .batch = 1,
                  .heads = 4,
                  .head_dim = 64,
                  .mode = mode,
                  .scope = ScopeKind::attention,
                  .causal = false,
                  .threads = 1,
                  .seed = 0};
  row.result.metrics = metrics;
  return row;
}

}  // namespace attn
