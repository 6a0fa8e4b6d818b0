// Brackets between lengths of different signs, then points around the root; see search.h.
#include "harness/crossing/search.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace attn {
namespace {

// A sign is decided where the 99 % interval of the ratio leaves out 1. Of some ten lengths near a
// crossing, 95 % would call one on the wrong side too often.
constexpr double kSure = 0.99;
// Logarithm of lengths. Over ±30 % the ratio is a line: for a time of a constant and a linear part
// against a quadratic one the curve is off by under 0.4 % at the ends.
constexpr double kWindow = 0.26;
constexpr size_t kFewestInWindow = 5, kMostInWindow = 12;
// A gap between two lengths beyond which the root is interpolated and measured before the points
// around it are placed.
constexpr double kWideGap = 0.7;
constexpr double kApart = 0.04;  // of two lengths of a window, where there is room
// Where lengths of a window go, in the order in which they are wanted.
constexpr double kOffsets[] = {-0.09, 0.09, -0.2, 0.2,   -0.03, 0.03,  -0.14, 0.14,
                               -0.24, 0.24, 0.0,  -0.06, 0.06,  -0.17, 0.17};

using Points = std::vector<RatioPoint>;

double log_of(int64_t length) { return std::log(static_cast<double>(length)); }

int sign_of(const Change& ratio) {
  if (!(std::abs(ratio.value) > reach(ratio, kSure))) return 0;
  return ratio.value < 0 ? -1 : 1;
}

bool is_exact(const Curve& curve) {
  return std::all_of(curve.points.begin(), curve.points.end(),
                     [](const RatioPoint& point) { return point.ratio.error == 0; });
}

Points in_order(const Curve& curve) {
  Points points = curve.points;
  std::sort(points.begin(), points.end(),
            [](const RatioPoint& a, const RatioPoint& b) { return a.length < b.length; });
  return points;
}

struct Bracket {
  int64_t low = 0, high = 0;  // decided, with different signs
  bool is_less_after = true;
};

// A length near a crossing may seem to be on the wrong side. So brackets that stand closer than a
// window are one, and none at all where the signs outside are the same.
std::vector<Bracket> brackets_of(const std::vector<std::pair<int64_t, int>>& signs, bool exact) {
  std::vector<Bracket> brackets;
  std::optional<std::pair<int64_t, int>> last;
  for (const auto& [length, sign] : signs) {
    if (sign == 0) continue;
    if (last && last->second != sign) {
      const bool joins = !exact && !brackets.empty() &&
                         log_of(last->first) - log_of(brackets.back().high) < kWindow &&
                         log_of(length) - log_of(brackets.back().low) < 2 * kWindow;
      if (!joins)
        brackets.push_back({last->first, length, sign < 0});
      else if (brackets.back().is_less_after == (sign < 0))
        brackets.back().high = length;
      else
        brackets.pop_back();
    }
    last = {length, sign};
  }
  return brackets;
}

class Refined {
 public:
  Refined(const Curve& curve, const Points& points, const Bracket& bracket)
      : curve_(curve), points_(points), bracket_(bracket) {
    crossing.is_less_after = bracket.is_less_after;
    crossing.low = static_cast<double>(bracket.low);
    crossing.high = static_cast<double>(bracket.high);
  }
  void refine_times();
  void refine_exactly();

  Crossing crossing;
  std::vector<int64_t> next;

 private:
  struct Guess {
    double at = 0;   // logarithm of the root
    double gap = 0;  // between the two lengths that it was taken from
  };
  Guess interpolated() const;
  Points window(double middle) const;
  double settled(double middle) const;  // by lines through the points around it
  // Adds a length near exp(target) that is `apart` from all others.
  bool want(double target, double apart);
  void want_around(double middle, size_t count);

  const Curve& curve_;
  const Points& points_;
  const Bracket bracket_;
};

// Between the two neighbours whose ratios have different signs; where noise makes several of them,
// the middle ones.
Refined::Guess Refined::interpolated() const {
  std::vector<Guess> guesses;
  for (size_t i = 0; i + 1 < points_.size(); i++) {
    const RatioPoint &a = points_[i], &b = points_[i + 1];
    if (a.length < bracket_.low || b.length > bracket_.high) continue;
    if ((a.ratio.value < 0) == (b.ratio.value < 0)) continue;
    const double gap = log_of(b.length) - log_of(a.length);
    const double share = a.ratio.value / (a.ratio.value - b.ratio.value);
    guesses.push_back({log_of(a.length) + share * gap, gap});
  }
  return guesses[guesses.size() / 2];
}

Points Refined::window(double middle) const {
  Points inside;
  for (const RatioPoint& point : points_)
    if (std::abs(log_of(point.length) - middle) <= kWindow) inside.push_back(point);
  return inside;
}

double Refined::settled(double middle) const {
  constexpr int kTimes = 4;
  for (int i = 0; i < kTimes; i++) {
    const auto line = line_crossing(window(middle));
    if (!line) break;
    const double root = std::log(line->at);
    if (!(std::abs(root - middle) <= kWindow) || root < log_of(bracket_.low) ||
        root > log_of(bracket_.high))
      break;
    middle = root;
  }
  return middle;
}

bool Refined::want(double target, double apart) {
  const int64_t length = std::clamp(even_length(std::exp(target)), curve_.low, curve_.high);
  const auto is_near = [&](int64_t other) {
    return other == length || std::abs(log_of(other) - log_of(length)) < apart;
  };
  if (curve_.unusable.count(length) || std::any_of(next.begin(), next.end(), is_near) ||
      std::any_of(points_.begin(), points_.end(),
                  [&](const RatioPoint& point) { return is_near(point.length); }))
    return false;
  next.push_back(length);
  return true;
}

void Refined::want_around(double middle, size_t count) {
  for (const double apart : {kApart, kApart / 2, 0.0})
    for (const double offset : kOffsets) {
      if (next.size() >= count) return;
      want(middle + offset, apart);
    }
}

void Refined::refine_times() {
  const auto [first, gap] = interpolated();
  if (gap > kWideGap && want(first, kNarrow)) return;
  const double middle = settled(first);
  const Points around = window(middle);
  if (around.size() < kFewestInWindow) {
    want_around(middle, kFewestInWindow - around.size());
    if (!next.empty()) return;
  }
  const auto line = line_crossing(around);
  if (line && line->is_bounded) {
    crossing.is_found = true;
    crossing.at = line->at;
    crossing.low = line->low;
    crossing.high = line->high;
    crossing.is_narrow =
        line->low >= line->at * (1 - kNarrow) && line->high <= line->at * (1 + kNarrow);
  }
  if (crossing.is_narrow || around.size() >= kMostInWindow) return;
  want_around(middle, std::min<size_t>(2, kMostInWindow - around.size()));
}

// Two lengths on both sides of the interpolated root, or, after some that did not enclose the
// root, the middle.
void Refined::refine_exactly() {
  constexpr double kBeside = 0.035;  // two of them are less than the interval may be wide
  constexpr ptrdiff_t kPatience = 4;
  const double low = log_of(bracket_.low), high = log_of(bracket_.high);
  crossing.is_found = true;
  crossing.at = std::exp((low + high) / 2);
  crossing.is_narrow =
      crossing.low >= crossing.at * (1 - kNarrow) && crossing.high <= crossing.at * (1 + kNarrow);
  if (crossing.is_narrow || bracket_.high - bracket_.low == 1) return;
  const auto [root, gap] = interpolated();
  const auto tried = std::count_if(points_.begin(), points_.end(), [&](const RatioPoint& point) {
    return std::abs(log_of(point.length) - (low + high) / 2) < std::log(2.0);
  });
  const auto want_inside = [&](double target) {
    const int64_t length = even_length(std::exp(target));
    if (length > bracket_.low && length < bracket_.high) want(target, 0);
  };
  if (tried < kPatience && high - low > 3 * kBeside) {
    want_inside(root - kBeside);
    want_inside(root + kBeside);
  }
  if (next.empty()) want_inside((low + high) / 2);
  for (int64_t length = bracket_.low + 1; next.empty() && length < bracket_.high; length++)
    if (!curve_.unusable.count(length)) next.push_back(length);
}

}  // namespace

int64_t even_length(double length) {
  constexpr int64_t kMostStep = 16;
  int64_t step = 1;
  while (step < kMostStep && static_cast<double>(2 * step) <= kNarrow * length) step *= 2;
  return std::max<int64_t>(1, std::llround(length / static_cast<double>(step)) * step);
}

std::vector<int64_t> first_lengths(int64_t low, int64_t high) {
  const double whole = log_of(high) - log_of(low);
  const auto gaps = std::max<int64_t>(1, std::llround(whole / std::log(4.0)));
  std::vector<int64_t> lengths = {low};
  for (int64_t i = 1; i < gaps; i++) {
    const double part = static_cast<double>(i) / static_cast<double>(gaps);
    const int64_t length = even_length(std::exp(log_of(low) + part * whole));
    if (length > lengths.back() && length < high) lengths.push_back(length);
  }
  if (high > low) lengths.push_back(high);
  return lengths;
}

SearchState search_step(const Curve& curve) {
  SearchState state;
  const Points points = in_order(curve);
  for (const RatioPoint& point : points)
    state.signs.emplace_back(point.length, sign_of(point.ratio));
  for (const int64_t length : first_lengths(curve.low, curve.high)) {
    const bool is_known = curve.unusable.count(length) ||
                          std::any_of(points.begin(), points.end(), [&](const RatioPoint& point) {
                            return point.length == length;
                          });
    if (!is_known) state.next.push_back(length);
  }
  if (!state.next.empty()) return state;
  const bool exact = is_exact(curve);
  for (const Bracket& bracket : brackets_of(state.signs, exact)) {
    Refined refined(curve, points, bracket);
    exact ? refined.refine_exactly() : refined.refine_times();
    state.crossings.push_back(refined.crossing);
    for (const int64_t length : refined.next)
      if (std::find(state.next.begin(), state.next.end(), length) == state.next.end())
        state.next.push_back(length);
  }
  const size_t asked = points.size() + curve.unusable.size();
  state.next.resize(std::min(state.next.size(), kMostLengths - std::min(kMostLengths, asked)));
  std::sort(state.next.begin(), state.next.end());
  return state;
}

}  // namespace attn
