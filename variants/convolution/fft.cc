// What all transforms share, whatever makes them; see fft.h.
#include "variants/convolution/fft.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numbers>

#include "core/base/check.h"

namespace attn {
namespace {

constexpr size_t kMostPlans = 64;  // kept; a run needs a few, unless each example has its length

}  // namespace

Complex Fft::turn(double part) {
  const double angle = 2 * std::numbers::pi * part;
  return {static_cast<real>(std::cos(angle)), static_cast<real>(std::sin(angle))};
}

Fft::Fft(int64_t length) : length_(length) {
  ATTN_CHECK(length >= 1 && length < (int64_t{1} << 30), "a Fourier transform of {} numbers",
             length);
  for (int64_t j = 0; j < length; ++j)
    quarter_turn_.push_back(turn(0.25 * static_cast<double>(j) / static_cast<double>(length)));
  plan_ = plan_of(length);
}

std::shared_ptr<const Fft> Fft::of(int64_t length) {
  static std::mutex mutex;
  static std::map<int64_t, std::shared_ptr<const Fft>> plans;
  const std::lock_guard lock(mutex);
  const auto known = plans.find(length);
  if (known != plans.end()) return known->second;
  if (plans.size() >= kMostPlans) plans.clear();
  return plans[length] = std::make_shared<const Fft>(length);
}

double fft_flops(int64_t length) {
  const auto n = static_cast<double>(length);
  return std::round(5 * n * std::log2(n));  // whole, so that sums of counts are exact
}

int64_t fast_length(int64_t least) {
  int64_t best = 1;
  while (best < least) best *= 2;
  for (int64_t odd : {3, 5, 9, 15}) {
    int64_t length = odd;
    while (length < least) length *= 2;
    best = std::min(best, length);
  }
  return best;
}

}  // namespace attn
