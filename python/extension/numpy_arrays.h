// Arrays to and from NumPy without a copy. Of the module's sources alone: needs the interpreter.
#pragma once

#include <nanobind/nanobind.h>

#include "python/extension/arrays.h"

namespace attn_python {

// An array of Python that holds `array.owner`. The caller holds the interpreter lock.
nanobind::object numpy_over(const Array& array, bool in_double);
// The same of bfloat16, which NumPy has not: int16 of the same bits.
nanobind::object numpy_over_bits(const Array& array);
// The numbers of a C-contiguous NumPy array, where they are. The caller holds the interpreter lock;
// whoever lets go of the last copy need not.
Array array_of(nanobind::handle numpy);

}  // namespace attn_python
