// What checks of gradients against a declared reference share: a gradient and the array that it
// belongs to, its length, the step of differences and what they may be off by; and what layers hand
// on in the form that references have.
#pragma once

#include <cmath>
#include <functional>
#include <string>

#include "harness/check/subject.h"
#include "variants/api/reference.h"

namespace attn {

// Central differences of the reference are good to about 1e-8 with this step, and hardly ever cross
// a kink of a relu or a border of a hash bucket.
inline constexpr double kReferenceStep = 1e-6;
// Of a gradient's length.
inline constexpr double kReferenceSlope = kIsDouble ? 1e-6 : 1e-3;

struct ReferencePart {
  std::string name;
  std::function<oracle::Array&(ReferenceInputs&)> input;
  Tensor gradient;
};

// Euclidean.
inline double length_of(const Tensor& t) {
  double sum = 0;
  for (int64_t i = 0; i < t.size(); i++)
    sum += static_cast<double>(t[i]) * static_cast<double>(t[i]);
  return std::sqrt(sum);
}

// What a layer hands on, [batch, rows, numbers], with one head: [batch, 1, rows, numbers] of the
// same memory.
inline Tensor as_matrices(const Tensor& handed) {
  return handed.reshaped({handed.dim(0), 1, handed.dim(1), handed.dim(2)});
}

}  // namespace attn
