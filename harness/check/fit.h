// Fits formulas to counts. A formula is a sum of products of sizes (n·n·d, n·d, d·d …) with simple
// coefficients. The fit minimises the squared relative errors, then rounds the coefficients and
// removes terms.
#pragma once

#include <string>
#include <vector>

namespace attn {

struct CountedFigure {
  std::vector<double> sizes;  // lengths, dimensions and parameters, in the same order everywhere
  double value = 0;
};

struct Term {
  std::vector<int> powers;  // of the sizes
  double coefficient = 1;
};

struct Formula {
  std::vector<Term> terms;

  double at(const std::vector<double>& sizes) const;
  std::string text(const std::vector<std::string>& names) const;  // "4 * n * n * d + 2 * n"; "0"
};

// The largest |formula / value - 1|; infinity if a value is 0 and the formula is not.
double worst_error(const Formula& formula, const std::vector<CountedFigure>& figures);

// Fits a sum of the candidate terms, which must differ. If an exact sum exists whose coefficients
// are multiples of 1/12 or 1/16, returns it. Else returns a sum of few terms with errors below
// kFitted, or, if the sum of all candidates has larger errors, with errors near these.
inline constexpr double kFitted = 0.004;
Formula fitted(const std::vector<std::vector<int>>& candidates,
               const std::vector<CountedFigure>& figures);

}  // namespace attn
