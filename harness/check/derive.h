// Derives cost formulas of a variant from the counters, for `attnbench check NAME --derive`. Runs
// forward passes at a grid of small shapes, fits formulas in batch · heads, the lengths, head_dim
// and the integer parameters of the variant, and compares them at shapes outside the grid. Takes a
// few seconds.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/check/fit.h"
#include "variants/api/variant_info.h"

namespace attn {

// A formula for FLOPs, or for memory or decode state in numbers of sizeof(real) bytes.
struct DerivedFigure {
  Formula formula;
  double error = 0;  // largest relative error over the grid and the shapes outside the grid
  std::vector<CountedFigure> outside;  // the counts outside the grid
  bool fits() const;                   // within kAllowedError
};

// Causal and bidirectional forward passes have separate formulas.
struct DerivedCase {
  bool causal = false;
  bool cross = false;  // the formulas also hold if q_len differs from kv_len
  DerivedFigure flops, peak;
  std::optional<DerivedFigure> state;  // if the variant decodes
  bool fits() const;
};

struct Derivation {
  static constexpr double kAllowedError = 0.01;

  std::string variant;
  // The variables of the formulas: heads (of all batch entries), m (queries), n (keys), d, or for a
  // mixer batch, n, n, width; then parameters.
  std::vector<std::string> names;
  std::vector<std::string> params;  // the parameters that the cost depends on
  bool mixer = false;
  // Numbers of all gates for each position and head: gate_scalars + gate_channels · d.
  int64_t gate_scalars = 0, gate_channels = 0;
  std::vector<DerivedCase> cases;

  // The values of `names`; `chosen` includes the defaults.
  std::vector<double> sizes(const AttentionShape& shape, const Params& chosen) const;
  // The body of do_cost as C++, with the comparison. If no formula is within kAllowedError, the
  // nearest formula and a table of the counts.
  std::string text() const;
};

// Error if the variant can run none of the shapes.
Derivation derive_cost(const VariantInfo& info, const std::map<std::string, ParamValue>& given);

}  // namespace attn
