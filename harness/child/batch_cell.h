// Speed cells of batches whose sequences are not alike: served, or packed.
#pragma once

#include "harness/cell/request.h"

namespace attn {

// A round for each sample, after a first call that is not counted; and where requests arrive, calls
// of other numbers of sequences.
Json served_cell(const Request& request);
// Samples of packed passes and of padded ones, in turn the ones and the others first.
Json packed_cell(const Request& request);

}  // namespace attn
