// What nearly every test includes, compiled once for all of them. As with core/precompiled.h, no
// file relies on it.
#pragma once

#include <gtest/gtest.h>

#include "core/precompiled.h"

#ifndef ATTN_DOUBLE  // the harness is float alone
#include <nlohmann/json.hpp>
#endif
