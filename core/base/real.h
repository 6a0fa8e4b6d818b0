// The number type of all tensors: float, or double where ATTN_DOUBLE is defined. The double build
// renames namespace attn to attn_f64 (see CMakeLists.txt), so that one program can contain both.
#pragma once

#include <limits>

namespace attn {

#ifdef ATTN_DOUBLE
using real = double;
#else
using real = float;
#endif

inline constexpr bool kIsDouble = sizeof(real) == 8;
inline constexpr real kEpsilon = std::numeric_limits<real>::epsilon();
inline constexpr real kInfinity = std::numeric_limits<real>::infinity();

}  // namespace attn
