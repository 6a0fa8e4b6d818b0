// What all layers of a model take together, from the rows of its kinds of layers.
#pragma once

#include <string>
#include <vector>

#include "harness/cell/row.h"
#include "harness/plan/model_shape.h"

namespace attn {

// A line for each model and set of axes of which every kind of layer has a time: "gemma3-4b at
// length 4096, decode: 29 x 0.4 ms + 5 x 1.2 ms = 17.6 ms, state 96 MiB". "": there is none.
std::string shape_totals(const std::vector<ModelShape>& shapes, const std::vector<Row>& rows);

}  // namespace attn
