// Arrays to tensors and back without a copy, in the precision of the build that includes this
// header; every source that does is compiled in float and in double.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/memory.h"
#include "core/tensor/tensor.h"
#include "python/extension/arrays.h"

#ifdef ATTN_DOUBLE
#define ATTN_PRECISION in_double
#else
#define ATTN_PRECISION in_float
#endif

namespace attn_python::ATTN_PRECISION {

inline attn::Shape shape_of(const std::vector<int64_t>& dims) {
  attn::Shape shape;
  ATTN_CHECK(dims.size() <= 4, "an array of {} dimensions; at most 4 are supported", dims.size());
  for (const int64_t dim : dims) shape = shape.appended(dim);
  return shape;
}

inline std::vector<int64_t> dims_of(const attn::Shape& shape) {
  std::vector<int64_t> dims;
  for (int i = 0; i < shape.rank(); i++) dims.push_back(shape[i]);
  return dims;
}

inline attn::Tensor tensor_over(const Array& array) {
  return attn::Tensor::over(shape_of(array.shape), static_cast<attn::real*>(array.data),
                            array.owner);
}

inline Array array_over(const attn::Tensor& tensor) {
  return {dims_of(tensor.shape()), tensor.data(), std::make_shared<const attn::Tensor>(tensor)};
}

// Calls body() and turns the errors of this build into those of Python.
template <class Body>
auto translated(const Body& body) {
  try {
    return body();
  } catch (const attn::OutOfMemory& error) {
    throw NoMemory(error.what());
  } catch (const attn::Error& error) {
    throw Refused(error.what());
  }
}

}  // namespace attn_python::ATTN_PRECISION
