// NumPy's .npy files, versions 1 to 3: float32, float64 and whole numbers, C order. Format:
// numpy.lib.format.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attn::cli {

struct Array {
  std::vector<int64_t> shape;
  std::vector<double> values;      // float32 widens without loss
  std::string type = "<f8";        // as in the file: <f4, <f8, <i4, <i8, |u1, …
  std::string shape_text() const;  // "[2, 4, 128, 64]"
  bool is_float() const { return type[1] == 'f'; }
};

// Error names the file and what is wrong with it: not .npy, Fortran order, another type, a cut
// file.
Array read_npy(const std::string& path);
// The array of the bytes of a file; `path` names it in an Error.
Array parse_npy(const std::string& path, const std::string& all);

// The bytes of a file of type <f4, <i4 or <f8.
std::string npy_bytes(const Array& array);
// Writes through a temporary file beside `path`, so that a failure leaves nothing half-written.
void write_npy(const std::string& path, const Array& array);

}  // namespace attn::cli
