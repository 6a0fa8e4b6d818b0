// `apply --scope layer`: the layer of a variant on the user's own rows.
#pragma once

#include "harness/cli/options.h"

namespace attn::cli {

// Error for an option that belongs to the other scope.
void require_options_of_scope(const Arguments& arguments, bool of_layer);
int apply_layer(const Arguments& arguments);

}  // namespace attn::cli
