// The precompiled header: what nearly every file uses of other libraries (cmake/library.cmake). No
// file may include it or rely on it. Each file includes the headers it uses, and builds without
// this one (-DATTN_UNITY=OFF). Headers of this project stay out: ccache looks for a precompiled
// header by its text without comments and macros, while the compiler compares the files byte by
// byte, so after a change of a comment it would serve one that the compiler does not accept.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
