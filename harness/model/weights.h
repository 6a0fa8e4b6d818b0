// Initial weights of a model. Each weight has its own random stream, named after the weight. Two
// models with the same seed therefore have the same initial values of the weights that both have.
#pragma once

#include <cstdint>
#include <string>

#include "variants/api/attention.h"

namespace attn {

Weight normal_weight(std::string name, Shape shape, uint64_t seed, double scale);  // N(0, scale²)
// [in, out] for x·W: N(0, 2 / (in + out)), Glorot and Bengio 2010, eq. 12 and 16.
Weight glorot_weight(std::string name, int64_t in, int64_t out, uint64_t seed);
Weight constant_weight(std::string name, Shape shape, double value);

}  // namespace attn
