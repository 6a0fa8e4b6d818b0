// The answer that was timed is the answer that is compared: outputs, gradients and decoded tokens
// of a workload's last pass, at its own shape. No figure of a pass is published that fails here.
#pragma once

#include <string>

#include "core/base/check.h"
#include "harness/measure/verified.h"
#include "harness/measure/workload.h"

namespace attn {

// The text says which row, by how much.
class WrongAnswer : public Error {
 public:
  using Error::Error;
};

// Of the last run() of the workload. Mode decode needs two runs. Throws WrongAnswer. Runs the
// workload a few times more; what it holds then is another pass's.
//
struct VerifyOptions {
  // Gradients of mode train, for a pass more, and tokens after the first of mode decode.
  bool whole = true;
  // Seconds that evaluations of references may take; where they would take longer, pieces and
  // identities are compared in their place.
  double budget_s = 60;
};
Verified verify(Workload& workload, const VerifyOptions& options = {});

}  // namespace attn
