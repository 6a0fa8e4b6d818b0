// What the program knows of the machine, and how it will compute on it: `attnbench list machine`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/cache.h"
#include "core/simd/tile_shape.h"
#include "harness/cell/noise_floor.h"
#include "harness/store/rows.h"
#include "variants/softmax/softmax.h"

namespace attn::cli {

struct Machine {
  std::string processor;                // "": unknown
  int64_t cores = 0;                    // logical, online
  std::vector<int> allowed;             // those that this process may run on; empty: unknown
  std::optional<double> quota;          // cores' worth of time that a control group allows
  CacheSizes caches;                    // of processor 0
  std::optional<int64_t> memory, page;  // bytes
  std::string bfloat16;                 // of products of bfloat16
  std::vector<std::string> sets;        // instruction sets that the kernels can use, best first
  std::string selected, compiled;       // that they use; of all other code
  TileShape tile;                       // of the product's registers
  int64_t panel = 0;                    // columns of a packed panel
  ForwardSizes forward;
  std::string threading;  // "OpenMP" or "std::thread"
  int64_t threads = 0;    // that a parallel loop may use at most
  NoiseFloor floors;      // that `attnbench noise` measured here with this build
};
// `floors` is the file in which noise floors are kept. Measures nothing; takes milliseconds.
Machine this_machine(const std::string& floors);

Json machine_json(const Machine& machine);         // unknown values are null
std::string machine_text(const Machine& machine);  // a line each; "unknown"

}  // namespace attn::cli
