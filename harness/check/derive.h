// A variant's cost as formulas, fitted to what the counters saw: `attnbench check NAME --derive`.
// Forwards at a grid of small shapes, a fit in batch · heads, lengths, head_dim and the variant's
// whole-number parameters, and a comparison at shapes that are not in the grid. A few seconds.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/check/fit.h"
#include "variants/api/variant_info.h"

namespace attn {

// FLOPs, or numbers (bytes over sizeof(real)) of memory or of a decoder's state.
struct DerivedFigure {
  Formula formula;
  double error = 0;  // the largest relative one, over the grid and the shapes outside it
  std::vector<CountedFigure> outside;
  bool fits() const;  // within kAllowedError
};

// Causal forwards and the others may cost differently, and are fitted apart.
struct DerivedCase {
  bool causal = false;
  bool cross = false;  // holds where q_len differs from kv_len
  DerivedFigure flops, peak;
  std::optional<DerivedFigure> state;  // where the variant decodes
  bool fits() const;
};

struct Derivation {
  static constexpr double kAllowedError = 0.01;

  std::string variant;
  // Of the sizes: heads (of all batch entries), m (queries), n (keys), d, or for a mixer batch,
  // n, n, width; then parameters. Each is a variable of the code.
  std::vector<std::string> names;
  std::vector<std::string> params;  // those that the cost was found to follow
  bool mixer = false;
  std::vector<DerivedCase> cases;

  // In the order of `names`; `chosen` has the defaults filled in.
  std::vector<double> sizes(const AttentionShape& shape, const Params& chosen) const;
  // The body of do_cost as C++, with what it was compared with; where no formula is within
  // kAllowedError, that, the nearest one and a table of what was counted.
  std::string text() const;
};

// Error where the variant can run none of the shapes.
Derivation derive_cost(const VariantInfo& info, const std::map<std::string, ParamValue>& given);

}  // namespace attn
