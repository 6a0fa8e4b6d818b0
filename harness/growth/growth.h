// How time and memory grow with length, from rows: an exponent and a constant for each variant,
// beside what the variant declares.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/cell/row.h"
#include "harness/growth/power_law.h"

namespace attn {

struct GrowthRequest {
  std::vector<Measure> measures = {Measure::speed, Measure::memory};
  int64_t from = 0, to = 0;   // lengths; 0: all
  std::optional<int64_t> at;  // a length to extrapolate to
};

struct Growth {
  Measure measure = Measure::speed;
  std::string group;               // "mode forward, causal false, …": the axes that it holds for
  std::string variant;             // label of `plugin`
  Plugin plugin;                   // with all its parameters
  std::vector<int64_t> lengths;    // that were fitted
  std::string reason;              // why there is no fit; "": there is one
  std::optional<PowerLaw> law;     // of seconds, or of bytes beyond inputs and outputs
  std::optional<double> declared;  // the exponent of the declared FLOPs or bytes at these lengths
  // The law of all lengths but the longest against what was measured there.
  struct HeldBack {
    int64_t length = 0;
    double measured = 0;
    PowerLaw::Prediction predicted;
    bool holds() const { return predicted.low <= measured && measured <= predicted.high; }
  };
  std::optional<HeldBack> held_back;                 // nullopt: too few points
  std::optional<PowerLaw::Prediction> extrapolated;  // of GrowthRequest::at
};

// One for each variant and set of axes other than length, in the order of the rows. A curve whose
// probability is below this is called one.
inline constexpr double kCurved = 0.01;
std::vector<Growth> growth_of(const std::vector<Row>& rows, const GrowthRequest& request);

}  // namespace attn
