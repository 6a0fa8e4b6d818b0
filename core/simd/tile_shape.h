// The register tile of the matrix product (product.h) on the selected instruction set: rows ×
// vectors sums of `lanes` numbers each stay in registers.
#pragma once

#include <cstdint>

namespace attn {

struct TileShape {
  int64_t rows = 0, vectors = 0, lanes = 0;
};
TileShape tile_shape();

}  // namespace attn
