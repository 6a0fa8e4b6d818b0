// A pair on its way to a verdict. Private to harness/compare.
#pragma once

#include <optional>

#include "harness/compare/compare.h"

namespace attn {

struct Tested {
  Compared shown;
  std::optional<Change> change;  // nullopt: the rows do not say how sure it is
  double margin = 0;             // half of the band, in the units of `change`
  double least_p = 0;            // of a second test; the greater probability counts
  bool is_disturbed = false;     // a row is marked as noisy: what differs may be the disturbance
};

}  // namespace attn
