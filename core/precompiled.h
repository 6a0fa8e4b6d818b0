// The precompiled header: the headers that nearly every file uses (cmake/library.cmake). No file
// may include it or rely on it. Each file includes the headers it uses, and builds without this one
// (-DATTN_UNITY=OFF).
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

#include "core/autograd/var.h"
#include "core/base/check.h"
#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/base/params.h"
#include "core/base/rng.h"
#include "core/ops/ops.h"
#include "core/tensor/tensor.h"
