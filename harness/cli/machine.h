// What the program knows of the machine, and how it will compute on it: `attnbench list machine`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/simd/tile_shape.h"
#include "harness/cell/noise_floor.h"
#include "harness/store/rows.h"
#include "variants/softmax/softmax.h"

namespace attn::cli {

// In bytes, of the processor that the folder describes; nullopt: the system does not say.
struct CacheSizes {
  std::optional<int64_t> l1d, l2, l3;
};
// From the folders index0, index1 .. of `folder`.
CacheSizes cache_sizes(const std::string& folder);
// "48K", "2048K" and "1M" as bytes; nullopt: no such size.
std::optional<int64_t> bytes_of_size(const std::string& text);

struct Machine {
  std::string processor;                // "": unknown
  int64_t cores = 0;                    // logical, online
  std::vector<int> allowed;             // those that this process may run on; empty: unknown
  std::optional<double> quota;          // cores' worth of time that a control group allows
  CacheSizes caches;                    // of processor 0
  std::optional<int64_t> memory, page;  // bytes
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
