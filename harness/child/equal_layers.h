// The widths of layers that Axes::equal asks for, found in a process of their own: what the search
// allocates and runs is not in the figures of the cell.
#pragma once

#include <stdexcept>

#include "harness/cell/key.h"
#include "harness/measure/equal.h"

namespace attn {

// A cell that cannot run, for a reason that a search alone can find.
class CannotRun : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Of the layers of `given`, made equal to those of exact attention. Throws CannotRun where no width
// does that. Call it before any thread starts: it forks.
LayerSizes equal_layers(const LayersSpec& given, Equal equal);

// What a cell asks its layers to have in common.
Equal equal_of(const CellKey& key);

}  // namespace attn
