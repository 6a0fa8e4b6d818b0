#include "harness/check/tied_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

void jitter(oracle::Array& of, Rng& random) {
  for (double& value : of.x) value += kRounding * random.normal();
}

}  // namespace

Gap gap_to(const Tensor& got, const oracle::Array& wanted, const std::vector<bool>& left_out) {
  const double scale = scale_of(wanted);
  Gap result;
  for (int64_t i = 0; i < got.size(); i++) {
    const int64_t row = i / wanted.dim;
    if (!left_out.empty() && left_out[static_cast<size_t>(row)]) continue;
    const double difference =
        std::abs(static_cast<double>(got[i]) - wanted.x[static_cast<size_t>(i)]) / scale;
    if (difference <= result.size) continue;
    result = {difference, row % wanted.len};
    if (std::isnan(difference)) break;
  }
  return result;
}

std::vector<bool> tied_rows(const Reference& reference, const ReferenceInputs& at,
                            const oracle::Array& wanted, double allowed) {
  const double scale = scale_of(wanted);
  const auto dim = static_cast<size_t>(wanted.dim);
  std::vector<bool> tied(wanted.x.size() / dim, false);
  Rng random = rng(75, "tied rows");
  for (int draw = 0; draw < kDraws; draw++) {
    ReferenceInputs near = at;
    jitter(near.q, random);
    jitter(near.k, random);
    const oracle::Array moved = reference(near);
    for (size_t i = 0; i < moved.x.size(); i++)
      if (std::abs(moved.x[i] - wanted.x[i]) > allowed * scale) tied[i / dim] = true;
  }
  const auto count = static_cast<size_t>(std::count(tied.begin(), tied.end(), true));
  if (count == 0 || count > std::max(kLeastTied, tied.size() / kMostShare)) return {};
  return tied;
}

}  // namespace attn
