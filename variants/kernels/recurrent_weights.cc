// How the weights of a recurrent cell are drawn and named; see recurrence.h. Time and memory O(size
// of the weights), once.
#include <algorithm>
#include <cmath>

#include "variants/kernels/recurrence.h"

namespace attn {

RecurrentWeights draw_recurrent(Cell cell, int64_t in, int64_t dim, uint64_t seed,
                                const std::string& role) {
  const int64_t gates = gates_of(cell) * dim;
  const double scale = 1 / std::sqrt(3 * static_cast<double>(dim));
  const auto matrix = [&](const char* name, int64_t rows) {
    return Var(Tensor::normal({rows, gates}, rng(seed, role + name), scale), true);
  };
  const Tensor bias = Tensor::zeros({gates});
  if (cell == Cell::lstm) std::fill_n(bias.data() + dim, dim, real(1));
  RecurrentWeights drawn{matrix("input", in), Var(bias, true), matrix("state", dim), {}};
  if (cell == Cell::gru) drawn.candidate_bias = Var(Tensor::zeros({dim}), true);
  return drawn;
}

std::vector<Weight> named(const RecurrentWeights& weights, const std::string& role) {
  std::vector<Weight> all = {{role + "input", weights.input},
                             {role + "bias", weights.bias},
                             {role + "state", weights.state}};
  if (weights.candidate_bias.defined())
    all.push_back({role + "candidate_bias", weights.candidate_bias});
  return all;
}

}  // namespace attn
