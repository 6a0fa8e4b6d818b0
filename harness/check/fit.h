// Formulas fitted to counted figures: sums of products of sizes (n·n·d, n·d, d·d …) with simple
// coefficients. Least squares on the relative errors, then rounding, then fewer terms.
#pragma once

#include <string>
#include <vector>

namespace attn {

struct CountedFigure {
  std::vector<double> sizes;  // of lengths, dimensions and parameters, in one order
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

// The largest |formula / value - 1|; where a value is 0 and the formula is not, infinity.
double worst_error(const Formula& formula, const std::vector<CountedFigure>& figures);

// Of the candidates, which differ: the sum that gives every figure exactly, with coefficients that
// are multiples of 1/12 or 1/16, where there is one; else one of few terms whose errors
// stay below kFitted, or, where all candidates together are further off, near theirs.
inline constexpr double kFitted = 0.004;
Formula fitted(const std::vector<std::vector<int>>& candidates,
               const std::vector<CountedFigure>& figures);

}  // namespace attn
