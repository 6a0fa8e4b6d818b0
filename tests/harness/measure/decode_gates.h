// The gates of all positions of a workload of mode decode: of its prefill and of its step.
#pragma once

#include <algorithm>
#include <vector>

#include "core/ops/ops.h"
#include "harness/measure/workload.h"

namespace attn {

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

}  // namespace attn
