// The number type of every tensor: float, or double where the sources are compiled with
// ATTN_DOUBLE. The double build also renames namespace attn to attn_f64 (see CMakeLists.txt), so
// both can live in one program.
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
