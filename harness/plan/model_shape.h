// The layers of a model, as a sweep measures them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/cell/key.h"

namespace attn {

struct ShapeLayer {
  int64_t count = 1;     // layers of the model that are such
  std::string variant;   // a spec of one variant
  Plugin plugin;         // which that is, as the key of a cell has it
  int64_t heads = 1;     // of queries
  int64_t kv_heads = 0;  // of keys and values; 0: as many
  int64_t head_dim = 1;

  int64_t own_kv_heads() const { return kv_heads > 0 ? kv_heads : heads; }
};

struct ModelShape {
  std::string name, source, note;  // note: what is not as in the model; "": nothing
  std::vector<ShapeLayer> layers;
};

}  // namespace attn
