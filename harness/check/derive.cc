// The candidate terms and the shapes; see derive.h. Lengths in the grid are multiples of 192 and
// dimensions multiples of 16. Tiles, strips and chunks are then complete, and formulas can be
// exact.
#include "harness/check/derive.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "harness/check/counting.h"

namespace attn {
namespace {

constexpr int64_t kLengths[] = {192, 384, 576}, kDims[] = {16, 32, 48};
constexpr std::pair<int64_t, int64_t> kHeads[] = {{1, 1}, {2, 1}, {1, 2}, {1, 3}};  // batch, heads

// Powers of batch · heads, queries, keys, dimension and the parameters.
std::vector<std::vector<int>> candidate_terms(const Derivation& of, const DerivedCase& one,
                                              bool memory) {
  const size_t params = of.params.size();
  std::vector<std::vector<int>> parts(1, std::vector<int>(params, 0));  // of parameters
  for (size_t i = 0; i < params; i++)
    for (size_t j = i; j <= params; j++) {
      parts.emplace_back(params, 0);
      parts.back()[i]++;
      if (j < params) parts.back()[j]++;
    }
  std::vector<std::pair<int, int>> lengths = {{0, 0}, {0, 1}, {0, 2}};  // of queries, of keys
  if (one.cross) lengths = {{0, 0}, {1, 0}, {0, 1}, {1, 1}};
  if (one.cross && one.causal) lengths.emplace_back(2, 0);  // the triangle before the last queries
  std::vector<std::vector<int>> terms;
  for (const int heads : {1, 0}) {
    if (heads == 0 && !memory) continue;
    for (const auto& [queries, keys] : lengths)
      for (const int dims : {0, 1, 2})
        for (const std::vector<int>& part : parts) {
          int degree = dims;
          for (const int power : part) degree += power;
          // What is held once, whatever the number of heads, is the workspace of one thread.
          const int most = heads == 0 ? 2 - queries - keys : queries + keys > 1 ? 2 : 3;
          if (degree > most) continue;
          terms.push_back({heads, queries, keys, dims});
          terms.back().insert(terms.back().end(), part.begin(), part.end());
        }
  }
  return terms;
}

// Every combination of lengths, dimension and parameters, each twice with numbers of heads drawn
// at random; of those combinations as many as kMostPoints has room for.
constexpr size_t kMostPoints = 200;

std::vector<Point> grid(const Counting& counting, const Derivation& of, const DerivedCase& one) {
  Rng draw = rng(1, "derive grid");
  std::vector<Point> points;
  std::vector<std::vector<int64_t>> levels = {{std::begin(kLengths), std::end(kLengths)},
                                              {std::begin(kDims), std::end(kDims)}};
  for (const std::string& name : of.params) levels.push_back(counting.levels(name));
  if (one.cross) levels.emplace_back(std::begin(kLengths), std::end(kLengths));
  size_t all = 2;
  for (const auto& values : levels) all *= values.size();
  const size_t step = (all + kMostPoints - 1) / kMostPoints;
  for (size_t i = 0; i < all; i += 1 + static_cast<size_t>(draw.below(2 * step - 1))) {
    Point at = counting.middle(one.causal);
    size_t rest = i / 2;
    std::vector<int64_t> chosen;
    for (const auto& values : levels) {
      chosen.push_back(values[rest % values.size()]);
      rest /= values.size();
    }
    at.shape.kv_len = at.shape.q_len = chosen[0];
    at.shape.head_dim = chosen[1];
    for (size_t p = 0; p < of.params.size(); p++) at.given[of.params[p]] = chosen[2 + p];
    if (one.cross) at.shape.q_len = chosen.back();
    if (one.causal && at.shape.q_len > at.shape.kv_len) continue;  // the first see nothing
    std::tie(at.shape.batch, at.shape.heads) =
        kHeads[2 * (i % 2) + static_cast<size_t>(draw.below(2))];
    if (counting.can_run(at)) points.push_back(std::move(at));
  }
  return points;
}

// Longer than the grid, between its lengths, and none of its dimensions; parameters as given.
std::vector<Point> outside(const Counting& counting, const DerivedCase& one) {
  std::vector<Point> points;
  for (const auto& [keys, dim] : {std::pair<int64_t, int64_t>{300, 24}, {700, 16}, {960, 40}})
    for (const int64_t queries : {keys, keys / 2}) {
      const Point at{{2, 2, queries, keys, dim, one.causal}, counting.given()};
      if ((one.cross || queries == keys) && counting.can_run(at)) points.push_back(at);
    }
  return points;
}

DerivedCase derive_case(const Counting& counting, const Derivation& of, bool causal, bool cross) {
  DerivedCase result{.causal = causal, .cross = cross, .flops = {}, .peak = {}, .state = {}};
  const std::vector<std::vector<int>> memory = candidate_terms(of, result, true);
  const std::vector<std::vector<int>> work = candidate_terms(of, result, false);
  const std::vector<Point> inside = grid(counting, of, result);
  const std::vector<Point> beyond = outside(counting, result);
  ATTN_CHECK(!inside.empty() && !beyond.empty(), "{} can run too few of the shapes", of.variant);
  std::vector<Counted> counted_inside, counted_beyond;
  for (const Point& at : inside) counted_inside.push_back(counting.count(at));
  for (const Point& at : beyond) counted_beyond.push_back(counting.count(at));
  const auto figures = [&](const std::vector<Point>& points, const std::vector<Counted>& counted,
                           double Counted::*field) {
    std::vector<CountedFigure> all;
    for (size_t i = 0; i < points.size(); i++) {
      const Params chosen(of.variant, counting.info().params, points[i].given);
      all.push_back({of.sizes(points[i].shape, chosen), counted[i].*field});
    }
    return all;
  };
  const auto derived = [&](const std::vector<std::vector<int>>& terms, double Counted::*field) {
    const std::vector<CountedFigure> known = figures(inside, counted_inside, field);
    DerivedFigure figure;
    figure.outside = figures(beyond, counted_beyond, field);
    figure.formula = fitted(terms, known);
    figure.error =
        std::max(worst_error(figure.formula, known), worst_error(figure.formula, figure.outside));
    return figure;
  };
  result.flops = derived(work, &Counted::flops);
  result.peak = derived(memory, &Counted::peak);
  if (counted_inside.front().state > 0) result.state = derived(work, &Counted::state);
  return result;
}

}  // namespace

bool DerivedFigure::fits() const { return error <= Derivation::kAllowedError; }

bool DerivedCase::fits() const { return flops.fits() && peak.fits() && (!state || state->fits()); }

std::vector<double> Derivation::sizes(const AttentionShape& shape, const Params& chosen) const {
  const int64_t outer = mixer ? shape.batch : shape.batch * shape.heads;
  const int64_t dim = mixer ? shape.heads * shape.head_dim : shape.head_dim;
  std::vector<double> all;
  for (const int64_t size : {outer, shape.q_len, shape.kv_len, dim})
    all.push_back(static_cast<double>(size));
  for (const std::string& name : params) all.push_back(static_cast<double>(chosen.integer(name)));
  return all;
}

Derivation derive_cost(const VariantInfo& info, const std::map<std::string, ParamValue>& given) {
  const Counting counting(info, given);
  Derivation best;
  best.variant = info.name;
  best.mixer = info.traits.mixer;
  const auto gate_width = [&](int64_t head_dim) {
    return total_width(info.gates_of(1, head_dim, Params(info.name, info.params, given)));
  };
  best.gate_channels = gate_width(2) - gate_width(1);
  best.gate_scalars = gate_width(1) - best.gate_channels;
  best.params = counting.params();
  best.names = best.mixer ? std::vector<std::string>{"batch", "n", "n", "width"}
                          : std::vector<std::string>{"heads", "m", "n", "d"};
  const std::set<std::string> taken = {"batch", "heads", "m", "n", "d", "width", "s"};
  for (const std::string& name : best.params)
    best.names.push_back(taken.count(name) ? name + "_param" : name);
  for (const bool causal : {false, true}) {
    if (!counting.can_run(counting.middle(causal))) continue;
    DerivedCase one;
    // With lengths of their own where there is a formula for that, else for q_len = kv_len.
    if (info.traits.cross) one = derive_case(counting, best, causal, true);
    if (!info.traits.cross || !one.fits()) one = derive_case(counting, best, causal, false);
    best.cases.push_back(std::move(one));
  }
  ATTN_CHECK(!best.cases.empty(), "{} cannot run at length {}: {}", info.name,
             counting.middle(false).shape.kv_len, *counting.why_not(counting.middle(false)));
  return best;
}

}  // namespace attn
