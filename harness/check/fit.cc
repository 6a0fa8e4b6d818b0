// Least squares by Gram-Schmidt in long double: counts are integers of up to 2^53, and terms of
// very different size must be exact to the unit. O(figures · candidates²) a solution.
#include "harness/check/fit.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace attn {
namespace {

using Column = std::vector<long double>;

long double inner(const Column& a, const Column& b) {
  long double sum = 0;
  for (size_t i = 0; i < a.size(); i++) sum += a[i] * b[i];
  return sum;
}

double product_of(const std::vector<int>& powers, const std::vector<double>& sizes) {
  double product = 1;
  for (size_t i = 0; i < powers.size(); i++)
    for (int times = 0; times < powers[i]; times++) product *= sizes[i];
  return product;
}

// Coefficients of the terms that make the sum of squared relative errors least. A term that is a
// sum of those before it gets 0.
std::vector<double> least_squares(const std::vector<std::vector<int>>& terms,
                                  const std::vector<CountedFigure>& figures) {
  constexpr long double kDependent = 1e-9L;  // of a column's length, what is left of it
  const size_t count = terms.size();
  long double typical = 0;
  for (const CountedFigure& figure : figures)
    typical = std::max<long double>(typical, std::abs(figure.value));
  Column target;
  std::vector<Column> columns(count);
  for (const CountedFigure& figure : figures) {
    const long double weight = 1 / (figure.value != 0 ? std::abs(figure.value) : typical);
    target.push_back(figure.value * weight);
    for (size_t t = 0; t < count; t++)
      columns[t].push_back(product_of(terms[t], figure.sizes) * weight);
  }
  std::vector<Column> upper(count, Column(count));  // column t = sum of upper[s][t] · basis[s]
  std::vector<bool> kept(count, false);
  std::vector<long double> wanted(count);
  for (size_t t = 0; t < count; t++) {
    Column& left = columns[t];
    const long double length = std::sqrt(inner(left, left));
    for (int pass = 0; pass < 2; pass++)  // twice is enough for orthogonal to the last bits
      for (size_t s = 0; s < t; s++) {
        if (!kept[s]) continue;
        const long double along = inner(columns[s], left);
        upper[s][t] += along;
        for (size_t i = 0; i < left.size(); i++) left[i] -= along * columns[s][i];
      }
    const long double rest = std::sqrt(inner(left, left));
    kept[t] = rest > kDependent * length;
    if (!kept[t]) continue;
    upper[t][t] = rest;
    for (long double& x : left) x /= rest;
    wanted[t] = inner(left, target);
    for (size_t i = 0; i < target.size(); i++) target[i] -= wanted[t] * left[i];
  }
  std::vector<double> coefficients(count, 0.0);
  for (size_t t = count; t-- > 0;) {
    if (!kept[t]) continue;
    long double sum = wanted[t];
    for (size_t s = t + 1; s < count; s++) sum -= upper[t][s] * coefficients[s];
    coefficients[t] = static_cast<double>(sum / upper[t][t]);
  }
  return coefficients;
}

Formula formula_of(const std::vector<std::vector<int>>& terms,
                   const std::vector<double>& coefficients) {
  Formula formula;
  for (size_t t = 0; t < terms.size(); t++)
    if (coefficients[t] != 0) formula.terms.push_back({terms[t], coefficients[t]});
  return formula;
}

// The nearest multiple of 1/12 or 1/16.
double simple(double value) {
  const double twelfths = std::round(value * 12) / 12, sixteenths = std::round(value * 16) / 16;
  return std::abs(value - twelfths) <= std::abs(value - sixteenths) ? twelfths : sixteenths;
}

double to_digits(double value, int digits) {
  if (value == 0) return 0;
  const double unit = std::pow(10, std::floor(std::log10(std::abs(value))) + 1 - digits);
  return std::round(value / unit) * unit;
}

// How much of a figure the term is, where it is most.
double share_of(const std::vector<int>& term, double coefficient,
                const std::vector<CountedFigure>& figures) {
  double most = 0;
  for (const CountedFigure& figure : figures)
    if (figure.value != 0)
      most = std::max(most, std::abs(coefficient * product_of(term, figure.sizes) / figure.value));
  return most;
}

}  // namespace

double Formula::at(const std::vector<double>& sizes) const {
  double sum = 0;
  for (const Term& term : terms) sum += term.coefficient * product_of(term.powers, sizes);
  return sum;
}

std::string Formula::text(const std::vector<std::string>& names) const {
  std::string text;
  for (const Term& term : terms) {
    const bool minus = term.coefficient < 0;
    text += text.empty() ? (minus ? "-" : "") : minus ? " - " : " + ";
    std::string factors;
    for (size_t i = 0; i < term.powers.size(); i++)
      for (int times = 0; times < term.powers[i]; times++)
        factors += (factors.empty() ? "" : " * ") + names[i];
    const std::string number = fmt::format("{:.12g}", std::abs(term.coefficient));
    if (factors.empty())
      text += number;
    else
      text += number == "1" ? factors : number + " * " + factors;
  }
  return text.empty() ? "0" : text;
}

double worst_error(const Formula& formula, const std::vector<CountedFigure>& figures) {
  double worst = 0;
  for (const CountedFigure& figure : figures) {
    const double found = formula.at(figure.sizes);
    if (found == figure.value) continue;
    const double error = figure.value != 0 ? std::abs(found / figure.value - 1)
                                           : std::numeric_limits<double>::infinity();
    worst = std::max(worst, error);
  }
  return worst;
}

Formula fitted(const std::vector<std::vector<int>>& candidates,
               const std::vector<CountedFigure>& figures) {
  constexpr double kExact = 1e-9;  // of counts that are added up as doubles
  std::vector<double> coefficients = least_squares(candidates, figures);
  std::vector<double> rounded = coefficients;
  for (double& coefficient : rounded) coefficient = simple(coefficient);
  const Formula exact = formula_of(candidates, rounded);
  if (worst_error(exact, figures) <= kExact) return exact;
  // The terms that say least are left out one by one, as long as the others can make up for them.
  const double allowed =
      std::max(kFitted, 1.5 * worst_error(formula_of(candidates, coefficients), figures));
  std::vector<std::vector<int>> terms = candidates;
  std::vector<bool> needed(terms.size(), false);
  while (true) {
    size_t least = terms.size();
    for (size_t t = 0; t < terms.size(); t++)
      if (!needed[t] &&
          (least == terms.size() || share_of(terms[t], coefficients[t], figures) <
                                        share_of(terms[least], coefficients[least], figures)))
        least = t;
    if (least == terms.size()) break;
    std::vector<std::vector<int>> fewer = terms;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(least));
    const std::vector<double> without = least_squares(fewer, figures);
    if (worst_error(formula_of(fewer, without), figures) > allowed) {
      needed[least] = true;
      continue;
    }
    terms = std::move(fewer);
    coefficients = without;
    needed.erase(needed.begin() + static_cast<std::ptrdiff_t>(least));
  }
  for (double& coefficient : coefficients) coefficient = to_digits(coefficient, 4);
  return formula_of(terms, coefficients);
}

}  // namespace attn
