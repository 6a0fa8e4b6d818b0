// Wrong variants that users might write, each caught by the check that is meant to: faults that
// show at some sizes, under some masks, in some channels or in the backward pass alone.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "variants/api/variant_info.h"

namespace attn {

struct PlantedVariant {
  VariantInfo info;
  std::string caught_by;  // the check that must fail; others may fail too
  bool at_quick = true;   // whether it must fail at the level that `run` asks for
  bool throws = false;    // whether the check cannot measure it
};
void PrintTo(const PlantedVariant& planted, std::ostream* out);
// The variant without a fault passes every check.
VariantInfo faultless(bool referenced);
VariantInfo faultless_gated(bool referenced);
std::vector<PlantedVariant> planted_variants();
// Of them: faults at sizes beyond the usual ones, after other calls, and in weights and requests
// for gradients.
std::vector<PlantedVariant> planted_at_edges();
// Of them: faults of what is read at each position beside queries, keys and values.
std::vector<PlantedVariant> planted_gates();
// Of them: faults of one kind of pass alone, in costs and in decode steps.
std::vector<PlantedVariant> planted_passes();

// A fault that shows at one shape alone, which a sweep publishes.
struct PlantedAtShape {
  VariantInfo info;
  AttentionShape shape;  // heads, head_dim and causality
};
std::vector<PlantedAtShape> planted_at_shapes();

}  // namespace attn
