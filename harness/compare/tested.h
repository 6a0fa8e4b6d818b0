// A pair on its way to a verdict. Private to harness/compare.
#pragma once

#include <optional>

#include "harness/compare/compare.h"
#include "harness/compare/undisturbed.h"

namespace attn {

struct Tested {
  Compared shown;
  std::optional<Change> change;  // nullopt: the rows do not say how sure it is
  double margin = 0;             // half of the band, in the units of `change`
  double least_p = 0;            // of a second test; the greater probability counts
  bool is_disturbed = false;     // a row is marked as noisy: what differs may be the disturbance
  // Of a disturbed pair that is not the same as it was seen; nullopt: nothing bounds it.
  std::optional<BoundedChange> bounded;
};

}  // namespace attn
