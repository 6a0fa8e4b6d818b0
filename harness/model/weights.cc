// Initial weights of a model; see weights.h. Time and memory O(size of the weight).
#include "harness/model/weights.h"

#include <cmath>
#include <utility>

namespace attn {

Weight normal_weight(std::string name, Shape shape, uint64_t seed, double scale) {
  const MemoryScope scope(Purpose::weights);
  Tensor value = Tensor::normal(shape, rng(seed, name), scale);
  return {std::move(name), Var(std::move(value), true)};
}

Weight glorot_weight(std::string name, int64_t in, int64_t out, uint64_t seed) {
  return normal_weight(std::move(name), {in, out}, seed,
                       std::sqrt(2.0 / static_cast<double>(in + out)));
}

Weight constant_weight(std::string name, Shape shape, double value) {
  const MemoryScope scope(Purpose::weights);
  return {std::move(name), Var(Tensor::full(shape, static_cast<real>(value)), true)};
}

}  // namespace attn
