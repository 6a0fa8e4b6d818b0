// Random inputs of workloads; see workload_inputs.h. N(0, 1), and gates by random_gates().
#include "harness/measure/workload_inputs.h"

#include "variants/api/forgetting.h"

namespace attn {
namespace {

int64_t positions_of(const WorkloadSpec& spec) {
  return spec.mode == Mode::decode ? 1 : spec.length;
}

}  // namespace

uint64_t WorkloadSpec::input_seed() const {
  return draw == 0 ? seed : rng(seed, "workload draw", draw).bits();
}

std::vector<Tensor> drawn_inputs(const WorkloadSpec& spec, bool rows) {
  const Shape query{spec.batch, spec.heads, positions_of(spec), spec.head_dim},
      key = query.with(1, spec.key_heads());
  const std::vector<Shape> shapes =
      rows ? std::vector<Shape>{{spec.batch, spec.length, spec.heads * spec.head_dim}}
           : std::vector<Shape>{query, key, key};
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < shapes.size(); ++i)
    inputs.push_back(Tensor::normal(shapes[i], rng(spec.input_seed(), "workload inputs", i)));
  return inputs;
}

std::vector<Tensor> drawn_gates(const WorkloadSpec& spec, const Attention& attention) {
  return random_gates(attention.gates(), spec.batch, spec.heads, positions_of(spec),
                      spec.input_seed());
}

Prefill drawn_prefill(const WorkloadSpec& spec, const Attention& attention, int64_t first,
                      int64_t count) {
  const Shape shape{spec.batch, spec.key_heads(), count, spec.head_dim};
  const auto index = static_cast<uint64_t>(first);
  const uint64_t seed = spec.input_seed();
  return {Tensor::normal(shape, rng(seed, "workload keys", index)),
          Tensor::normal(shape, rng(seed, "workload values", index)),
          random_gates(attention.gates(), spec.batch, spec.heads, count, seed, 1, index + 1),
          as_forgetting(attention)
              ? Tensor::normal(shape.with(1, spec.heads), rng(seed, "workload queries", index))
              : Tensor()};
}

}  // namespace attn
