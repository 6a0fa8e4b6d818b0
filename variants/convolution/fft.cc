// Plans of FFTW by estimate; see fft.h. Beyond 4096 numbers estimated plans are up to 2.4 times as
// slow as those that FFTW finds by measuring (AMD EPYC with AVX-512, float). There, four transforms
// of a quarter of the length are combined here.
#include "variants/convolution/fft.h"

#include <fftw3.h>

#include <Eigen/Core>
#include <cmath>
#include <map>
#include <mutex>
#include <numbers>

#include "core/base/check.h"

namespace attn {
namespace {

constexpr int64_t kLongestAlone = 4096;
constexpr int64_t kRadix = 4;
constexpr size_t kMostPlans = 64;  // kept; a run needs a few, unless each example has its length

#ifdef ATTN_DOUBLE
using Plan = fftw_plan;
using Number = fftw_complex;
constexpr auto make_plans = fftw_plan_many_dft;
constexpr auto execute = fftw_execute_dft;
constexpr auto destroy = fftw_destroy_plan;
constexpr auto new_array = fftw_alloc_complex;
constexpr auto free_array = fftw_free;
#else
using Plan = fftwf_plan;
using Number = fftwf_complex;
constexpr auto make_plans = fftwf_plan_many_dft;
constexpr auto execute = fftwf_execute_dft;
constexpr auto destroy = fftwf_destroy_plan;
constexpr auto new_array = fftwf_alloc_complex;
constexpr auto free_array = fftwf_free;
#endif

// FFTW's planner is not thread-safe; its execution is.
std::mutex& planner() {
  static std::mutex mutex;
  return mutex;
}

Complex turn(double part) {  // e^(2πi·part)
  const double angle = 2 * std::numbers::pi * part;
  return {static_cast<real>(std::cos(angle)), static_cast<real>(std::sin(angle))};
}

}  // namespace

Fft::Fft(int64_t length)
    : length_(length), radix_(length > kLongestAlone && length % kRadix == 0 ? kRadix : 1) {
  ATTN_CHECK(length >= 1 && length < (int64_t{1} << 30), "a Fourier transform of {} numbers",
             length);
  const int64_t part = length / radix_;
  for (int64_t r = 1; r < radix_; ++r)
    for (int64_t k = 0; k < part; ++k)
      twiddles_.push_back(turn(-static_cast<double>(r * k) / static_cast<double>(length)));
  for (int64_t j = 0; j < length; ++j)
    quarter_turn_.push_back(turn(0.25 * static_cast<double>(j) / static_cast<double>(length)));

  const std::lock_guard lock(planner());
  Number* const from = new_array(static_cast<size_t>(length));
  Number* const to = new_array(static_cast<size_t>(length));
  const int n = static_cast<int>(part), count = static_cast<int>(radix_);
  for (const int sign : {FFTW_FORWARD, FFTW_BACKWARD})
    plans_[sign == FFTW_BACKWARD] = make_plans(1, &n, count, from, nullptr, count, 1, to, nullptr,
                                               1, n, sign, FFTW_ESTIMATE | FFTW_PRESERVE_INPUT);
  free_array(from), free_array(to);
  ATTN_CHECK(plans_[0] && plans_[1], "FFTW has no plan for {} numbers", length);
}

Fft::~Fft() {
  const std::lock_guard lock(planner());
  for (void* const plan : plans_)
    if (plan) destroy(static_cast<Plan>(plan));
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

void Fft::run(bool is_backward, const Complex* from, Complex* to) const {
  // FFTW takes no const pointer; FFTW_PRESERVE_INPUT promises not to write.
  auto* const input = reinterpret_cast<Number*>(const_cast<Complex*>(from));
  execute(static_cast<Plan>(plans_[is_backward]), input, reinterpret_cast<Number*>(to));
  if (radix_ > 1) combine(is_backward, to);
}

// Cooley and Tukey 1965, Math. Comp. 19(90), decimation in time: row r of `to` is the transform of
// the numbers r, r + 4, ...; column k of the rows becomes the numbers k, k + part, ...
void Fft::combine(bool is_backward, Complex* to) const {
  constexpr int64_t kChunk = 32;
  using Chunk = Eigen::Array<Complex, kChunk, 1>;
  using Numbers = Eigen::Map<Chunk>;
  using Factors = Eigen::Map<const Chunk>;
  const int64_t part = length_ / radix_, whole = part / kChunk * kChunk;
  const Complex* const w = twiddles_.data();
  const auto factor = [&](const Complex* at) -> Chunk {
    return is_backward ? Chunk(Factors(at).conjugate()) : Chunk(Factors(at));
  };
  const Complex quarter(0, is_backward ? real(1) : real(-1));
  for (int64_t k = 0; k < whole; k += kChunk) {
    Numbers a(to + k), b(to + part + k), c(to + 2 * part + k), d(to + 3 * part + k);
    const Chunk second = b * factor(w + k), third = c * factor(w + part + k),
                fourth = d * factor(w + 2 * part + k);
    const Chunk even = a + third, odd = a - third, sum = second + fourth,
                difference = (second - fourth) * quarter;
    a = even + sum, b = odd + difference, c = even - sum, d = odd - difference;
  }
  const auto of = [&](Complex x) { return is_backward ? std::conj(x) : x; };
  for (int64_t k = whole; k < part; ++k) {
    Complex &a = to[k], &b = to[part + k], &c = to[2 * part + k], &d = to[3 * part + k];
    const Complex second = b * of(w[k]), third = c * of(w[part + k]),
                  fourth = d * of(w[2 * part + k]);
    const Complex even = a + third, odd = a - third, sum = second + fourth,
                  difference = (second - fourth) * quarter;
    a = even + sum, b = odd + difference, c = even - sum, d = odd - difference;
  }
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
