// Arrays that Python and the library share, of either precision, and what errors become on the way
// to Python. No file of the library includes these headers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace attn_python {

// At most 4 dimensions, C order. The numbers are float or double: which of the two follows from the
// function that takes or returns the array.
struct Array {
  std::vector<int64_t> shape;
  void* data = nullptr;                 // null: no array
  std::shared_ptr<const void> owner{};  // of the memory; not null where data is not

  bool given() const { return data != nullptr; }
  int64_t size() const {
    return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  }
};

// The types of attn::ParamValue, which both builds share.
using ParamValues = std::map<std::string, std::variant<int64_t, double, bool, std::string>>;

// attn::Error and attn::OutOfMemory are two types each, of float and of double; these are one.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
class NoMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace attn_python
