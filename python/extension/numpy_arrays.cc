// See numpy_arrays.h.
#include "python/extension/numpy_arrays.h"

#include <nanobind/ndarray.h>

#include <utility>

namespace attn_python {
namespace {

namespace nb = nanobind;

std::shared_ptr<const void> kept(nb::handle object) {
  object.inc_ref();
  return {object.ptr(), [](PyObject* held) {
            if (!Py_IsInitialized()) return;  // the process ends
            const nb::gil_scoped_acquire lock;
            Py_DECREF(held);
          }};
}

nb::object numpy_of(const Array& array, nb::dlpack::dtype dtype) {
  using Owner = std::shared_ptr<const void>;
  const nb::capsule owner(new Owner(array.owner),
                          [](void* held) noexcept { delete static_cast<Owner*>(held); });
  const std::vector<size_t> shape(array.shape.begin(), array.shape.end());
  return nb::ndarray<nb::numpy>(array.data, shape.size(), shape.data(), owner, nullptr, dtype)
      .cast();
}

}  // namespace

nb::object numpy_over(const Array& array, bool in_double) {
  return numpy_of(array, in_double ? nb::dtype<double>() : nb::dtype<float>());
}

nb::object numpy_over_bits(const Array& array) { return numpy_of(array, nb::dtype<int16_t>()); }

Array array_of(nb::handle numpy) {
  using Contiguous = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
  const auto given = nb::cast<Contiguous>(numpy, false);
  Array array{.shape = {}, .data = const_cast<void*>(given.data()), .owner = kept(numpy)};
  for (size_t i = 0; i < given.ndim(); i++)
    array.shape.push_back(static_cast<int64_t>(given.shape(i)));
  return array;
}

}  // namespace attn_python
