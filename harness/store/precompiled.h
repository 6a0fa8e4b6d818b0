// What core precompiles, and the JSON of rows, for all that reads or writes rows
// (cmake/library.cmake). No file relies on it.
#pragma once

#include <nlohmann/json.hpp>

#include "core/precompiled.h"
