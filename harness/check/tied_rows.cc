// Rows where rounding decides which keys a query gets; see tied_rows.h.
#include "harness/check/tied_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/rng.h"

namespace attn {
namespace {

constexpr int kDraws = 8;
// By which rounding may move what is compared, in units of the working precision.
constexpr double kRounding = 32 * static_cast<double>(std::numeric_limits<real>::epsilon());
constexpr size_t kLeastTied = 2, kMostShare = 16;  // at most max(2, a sixteenth of the rows)

double scale_of(const oracle::Array& wanted) {
  double scale = 0.1;
  for (const double value : wanted.x) scale = std::max(scale, std::abs(value));
  return scale;
}

// The largest difference between one row and that of `outputs`; NaN if an entry is not a number.
double difference(const Tensor& got, const oracle::Array& outputs, int64_t row) {
  double largest = 0;
  for (int64_t i = row * outputs.dim; i < (row + 1) * outputs.dim; i++) {
    const double off = std::abs(static_cast<double>(got[i]) - outputs.x[static_cast<size_t>(i)]);
    if (!(off <= largest)) largest = off;
    if (std::isnan(off)) break;
  }
  return largest;
}

}  // namespace

Gap gap_to(const Tensor& got, const Wanted& wanted) {
  const oracle::Array& outputs = wanted.outputs;
  const double scale = scale_of(outputs);
  Gap result;
  for (int64_t row = 0; row < got.size() / outputs.dim; row++) {
    double off = difference(got, outputs, row);
    if (wanted.is_tied(row))
      for (const oracle::Array& other : wanted.others)
        off = std::min(off, difference(got, other, row));  // NaN stays
    if (off / scale <= result.size) continue;
    result = {off / scale, row % outputs.len};
    if (std::isnan(off)) break;
  }
  return result;
}

ReferenceInputs within_rounding(ReferenceInputs at, Rng& random) {
  for (oracle::Array* of : {&at.q, &at.k})
    for (double& value : of->x) value += kRounding * random.normal();
  return at;
}

void find_ties(const Reference& reference, const ReferenceInputs& at, double allowed,
               Wanted& wanted) {
  const double scale = scale_of(wanted.outputs);
  const auto dim = static_cast<size_t>(wanted.outputs.dim);
  std::vector<bool> tied(wanted.outputs.x.size() / dim, false);
  std::vector<oracle::Array> others;
  Rng random = rng(75, "tied rows");
  for (int draw = 0; draw < kDraws; draw++) {
    others.push_back(reference(within_rounding(at, random)));
    const std::vector<double>& moved = others.back().x;
    for (size_t i = 0; i < moved.size(); i++)
      if (std::abs(moved[i] - wanted.outputs.x[i]) > allowed * scale) tied[i / dim] = true;
  }
  const auto count = static_cast<size_t>(std::count(tied.begin(), tied.end(), true));
  if (count == 0 || count > std::max(kLeastTied, tied.size() / kMostShare)) return;
  wanted.tied = std::move(tied);
  wanted.others = std::move(others);
}

}  // namespace attn
