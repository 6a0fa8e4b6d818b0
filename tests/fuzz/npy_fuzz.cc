// A .npy file: an array of floating-point numbers that is written reads the same.
#include "harness/cli/npy.h"

#include <cmath>

#include "tests/fuzz/oracle.h"
#include "tests/fuzz/targets.h"

namespace attn::fuzz {
namespace {

bool is_same(double a, double b) {
  return a == b ? std::signbit(a) == std::signbit(b) : std::isnan(a) && std::isnan(b);
}

}  // namespace

void npy(std::string_view bytes) {
  cli::Array array;
  if (!accepts([&] { array = cli::parse_npy("q.npy", std::string(bytes)); })) return;
  size_t count = 1;
  for (const int64_t dim : array.shape) count *= static_cast<size_t>(dim);
  require(count == array.values.size(), "values that the shape does not hold");
  if (!array.is_float()) return;
  const cli::Array again = cli::parse_npy("again.npy", cli::npy_bytes(array));
  require(again.shape == array.shape && again.type == array.type, "the shape or type changes");
  for (size_t i = 0; i < count; i++)
    require(is_same(again.values[i], array.values[i]), "a value changes when written");
}

}  // namespace attn::fuzz
