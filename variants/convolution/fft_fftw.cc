// Plans of FFTW (fftw.org) by estimate; see fft.h. Beyond 4096 numbers estimated plans are up
// to 2.4 times as slow as those that FFTW finds by measuring (AMD EPYC with AVX-512, float). There,
// four transforms of a quarter of the length are combined here.
#include <fftw3.h>

#include <Eigen/Core>
#include <mutex>

#include "core/base/check.h"
#include "variants/convolution/fft.h"

namespace attn {
namespace {

constexpr int64_t kLongestAlone = 4096;
constexpr int64_t kRadix = 4;

#ifdef ATTN_DOUBLE
using Handle = fftw_plan;
using Number = fftw_complex;
constexpr auto make_plans = fftw_plan_many_dft;
constexpr auto execute = fftw_execute_dft;
constexpr auto destroy = fftw_destroy_plan;
constexpr auto new_array = fftw_alloc_complex;
constexpr auto free_array = fftw_free;
#else
using Handle = fftwf_plan;
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

}  // namespace

struct Fft::Plan {
  int64_t length, radix;          // radix transforms of length / radix numbers are combined
  Handle plans[2] = {};           // forward, backward
  std::vector<Complex> twiddles;  // e^(-2πi·r·k/length) at [r - 1, k]

  explicit Plan(int64_t n);
  ~Plan();
  void combine(bool is_backward, Complex* to) const;
};

Fft::Plan::Plan(int64_t n) : length(n), radix(n > kLongestAlone && n % kRadix == 0 ? kRadix : 1) {
  const int64_t each = length / radix;
  for (int64_t r = 1; r < radix; ++r)
    for (int64_t k = 0; k < each; ++k)
      twiddles.push_back(turn(-static_cast<double>(r * k) / static_cast<double>(length)));

  const std::lock_guard lock(planner());
  Number* const from = new_array(static_cast<size_t>(length));
  Number* const to = new_array(static_cast<size_t>(length));
  const int part = static_cast<int>(each), count = static_cast<int>(radix);
  for (const int sign : {FFTW_FORWARD, FFTW_BACKWARD})
    plans[sign == FFTW_BACKWARD] = make_plans(1, &part, count, from, nullptr, count, 1, to, nullptr,
                                              1, part, sign, FFTW_ESTIMATE | FFTW_PRESERVE_INPUT);
  free_array(from), free_array(to);
  ATTN_CHECK(plans[0] && plans[1], "FFTW has no plan for {} numbers", length);
}

Fft::Plan::~Plan() {
  const std::lock_guard lock(planner());
  for (const Handle plan : plans)
    if (plan) destroy(plan);
}

std::shared_ptr<const Fft::Plan> Fft::plan_of(int64_t length) {
  return std::make_shared<const Plan>(length);
}

void Fft::run(bool is_backward, const Complex* from, Complex* to) const {
  // FFTW takes no const pointer; FFTW_PRESERVE_INPUT promises not to write.
  auto* const input = reinterpret_cast<Number*>(const_cast<Complex*>(from));
  execute(plan_->plans[is_backward], input, reinterpret_cast<Number*>(to));
  if (plan_->radix > 1) plan_->combine(is_backward, to);
}

// Cooley and Tukey 1965, Math. Comp. 19(90), decimation in time: row r of `to` is the transform of
// the numbers r, r + 4, ...; column k of the rows becomes the numbers k, k + part, ...
void Fft::Plan::combine(bool is_backward, Complex* to) const {
  constexpr int64_t kChunk = 32;
  using Chunk = Eigen::Array<Complex, kChunk, 1>;
  using Numbers = Eigen::Map<Chunk>;
  using Factors = Eigen::Map<const Chunk>;
  const int64_t part = length / radix, whole = part / kChunk * kChunk;
  const Complex* const w = twiddles.data();
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

}  // namespace attn
