// `list --coverage`: the attention mixers that libraries ship, and what does each of them here.
#pragma once

#include <string>

#include "harness/store/rows.h"

namespace attn::cli {

std::string mixer_coverage_text();
Json mixer_coverage_json();

}  // namespace attn::cli
