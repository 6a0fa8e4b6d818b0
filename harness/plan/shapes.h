// Layers of known models, for `run --shape`: profiles/shapes.toml, which CMake embeds, and files of
// one's own with the same keys. Nothing is measured here.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/plan/model_shape.h"
#include "harness/plan/profiles.h"

namespace attn {

const std::vector<ModelShape>& all_shapes();
// Reads a file of shapes; `file` is named in an Error, with the line.
std::vector<ModelShape> read_shapes(const std::string& file, std::string_view text);
// Error naming the nearest one when unknown.
const ModelShape& find_shape(std::string_view name);

// Error where shapes or tokens are asked for beside a measure that they do not apply to.
void refuse_idle_shapes(const SweepRequest& request, const std::vector<Measure>& measures);
// What is resolved for one sub-sweep: itself, or with shapes one for each kind of layer, of which
// the request's axes name the heads. Without variants of its own, it is of the layer's variant;
// unless told, it hides the future, as all these models do.
// Where tokens are constant, the batch of each length is their quotient. Error where an axis is
// given twice, or a length is no part of the tokens.
std::vector<std::pair<SubSweep, SweepRequest>> at_shapes(const SubSweep& sweep,
                                                         const SweepRequest& request);

}  // namespace attn
