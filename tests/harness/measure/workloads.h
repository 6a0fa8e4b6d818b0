// What a workload counts, and what one of mode decode has read and answered.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/counters.h"
#include "core/ops/ops.h"
#include "harness/measure/workload.h"

namespace attn {

inline double counted_flops(Workload& workload) {
  workload.run();  // the first makes what later ones reuse
  const double before = counters().flops;
  workload.run();
  return counters().flops - before;
}

// The gates of all positions, of the prefill of mode decode and of its step.
inline std::vector<Var> gates_of_all_positions(const Workload& workload) {
  const WorkloadSpec& spec = workload.spec();
  const std::vector<GateInput>& gates = workload.attention().gates();
  const int64_t before = spec.length - 1, many = prefill_positions(spec);
  std::vector<std::vector<Var>> parts(gates.size());
  for (int64_t at = 0; at < before; at += many) {
    const std::vector<Tensor> some =
        random_gates(gates, spec.batch, spec.heads, std::min(many, before - at), spec.seed, 1,
                     static_cast<uint64_t>(at) + 1);
    for (size_t i = 0; i < gates.size(); i++) parts[i].emplace_back(some[i]);
  }
  std::vector<Var> all;
  for (size_t i = 0; i < gates.size(); i++) {
    parts[i].push_back(workload.gates()[i]);
    all.push_back(concat(parts[i], 2));
  }
  return all;
}

// Expects of what a workload has decoded, [batch, heads, 1, head_dim], the last rows of `all`,
// [batch, heads, length, head_dim].
inline void expect_last_rows(const Workload& workload, const Tensor& all) {
  const int64_t n = workload.spec().length, dim = workload.spec().head_dim;
  const Tensor& out = workload.decoded();
  real largest = 1;  // sums that cancel are as inexact as the largest of them
  for (int64_t i = 0; i < out.size(); i++) largest = std::max(largest, std::abs(out[i]));
  for (int64_t i = 0; i < out.size(); i++) {
    const real expected = all[(i / dim * n + n - 1) * dim + i % dim];
    ASSERT_NEAR(out[i], expected, 1e-5 * largest) << workload.spec().variant->name << " at " << i;
  }
}

}  // namespace attn
