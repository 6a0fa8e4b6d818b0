// What the machine can do at best: fused multiply-adds a second on one and on all threads, and
// bytes copied a second. Independent chains of one vector FMA each fill both pipelines; memcpy far
// beyond the caches. Under a second.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>

#include "core/eigen.h"
#include "core/parallel.h"
#include "harness/measure/measure.h"

namespace attn {
namespace {

using Packet = Eigen::internal::packet_traits<real>::type;  // the widest vector of this build's
                                                            // instruction set
constexpr int64_t kWidth = Eigen::internal::packet_traits<real>::size;
// Two units times a latency of 4 or 5 cycles need 8 to 10; with the two operands 14 of the 16
// registers of AVX2 are taken.
constexpr int kChains = 12;
// A trial is far shorter than the time slice of a scheduler, so that on a busy machine most are
// undisturbed.
constexpr int64_t kRounds = 50'000;  // 0.1 to 0.3 ms
constexpr int kTrials = 150;
constexpr int kProductTrials = 40;
constexpr int kCopyTrials = 3;
constexpr int kAttempts = 3;
constexpr int64_t kProduct =
    256;  // a product that stays in the second-level cache; about as long as a trial

// Sorted.
std::vector<double> seconds_of(int trials, const std::function<void()>& body) {
  std::vector<double> seconds;
  for (int trial = 0; trial < trials; ++trial) {
    const auto start = std::chrono::steady_clock::now();
    body();
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

template <size_t... I>
real run_chains(int64_t rounds, real factor, real offset, std::index_sequence<I...>) {
  using Eigen::internal::pmadd;
  using Eigen::internal::pset1;
  const Packet x = pset1<Packet>(factor), y = pset1<Packet>(offset);
  Packet chain[] = {pset1<Packet>(static_cast<real>(I))...};
  for (int64_t round = 0; round < rounds; ++round) ((chain[I] = pmadd(chain[I], x, y)), ...);
  return (Eigen::internal::predux(chain[I]) + ...);
}

// Not inlined, so that no call to the clock makes the compiler spill the chains' registers inside
// the loop.
[[gnu::noinline]] real multiply_add_loop(int64_t rounds, real factor, real offset) {
  return run_chains(rounds, factor, offset, std::make_index_sequence<kChains>());
}

// Operands that the compiler cannot see; x·0.5 + 0.25 stays between 0 and kChains, never denormal.
volatile real g_factor = real(0.5), g_offset = real(0.25);
thread_local volatile real g_sink = 0;

constexpr double kFlops = 2.0 * kRounds * kChains * kWidth;  // of one trial

void fma_trial() { g_sink = multiply_add_loop(kRounds, g_factor, g_offset); }

// The best trial: whatever disturbs one makes it slower, never faster.
double fma_rate_one() { return kFlops / seconds_of(kTrials, fma_trial).front(); }

// Every thread times itself while the others run, and its median counts: a best trial could fall
// where another thread was done.
double fma_rate_all(int thread_count) {
  std::vector<double> rates(static_cast<size_t>(thread_count));
  parallel_for(thread_count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      rates[static_cast<size_t>(t)] = kFlops / seconds_of(kTrials, fma_trial)[kTrials / 2];
    }
  });
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

double product_rate() {
  const real value = g_factor;
  const Matrix a = Matrix::Constant(kProduct, kProduct, value), b = a;
  Matrix c(kProduct, kProduct);
  const double seconds = seconds_of(kProductTrials, [&] { c.noalias() = a * b; }).front();
  g_sink = g_sink + c(0, 0);
  return 2.0 * kProduct * kProduct * kProduct / seconds;
}

// A peak that a product beats is no peak: then something disturbed the loop, or the compiler broke
// it.
double checked_fma_rate_one() {
  double rate = 0, product = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    rate = std::max(rate, fma_rate_one());
    product = std::max(product, product_rate());
    if (rate >= product) return rate;
  }
  throw_error(
      fmt::format("calibration: the FMA loop reaches {:.3g} FLOP/s and a matrix product {:.3g}",
                  rate, product));
}

// 256 MiB a side, or twice the last-level cache where that is more, but 1 GiB at most.
size_t copy_bytes() {
  constexpr int64_t kLeast = int64_t{256} << 20, kMost = int64_t{1} << 30;
  const int64_t cache = std::max<int64_t>(0, ::sysconf(_SC_LEVEL3_CACHE_SIZE));
  return static_cast<size_t>(std::clamp(2 * cache, kLeast, kMost));
}

double copy_rate(int thread_count) {
  const size_t bytes = copy_bytes();
  const auto from = std::make_unique_for_overwrite<char[]>(bytes),
             to = std::make_unique_for_overwrite<char[]>(bytes);
  const auto chunk = static_cast<int64_t>(bytes) / thread_count + 1;
  const auto each = [&](const auto& body) {
    parallel_for(static_cast<int64_t>(bytes), chunk, [&](int64_t begin, int64_t end) {
      body(to.get() + begin, from.get() + begin, static_cast<size_t>(end - begin));
    });
  };
  each([](char* target, char* source,
          size_t size) {  // pages are made here, near the thread that copies them
    std::memset(target, 1, size);
    std::memset(source, 2, size);
  });
  const double seconds = seconds_of(kCopyTrials, [&] {
                           each([](char* target, const char* source, size_t size) {
                             std::memcpy(target, source, size);
                           });
                         }).front();
  g_sink = g_sink + to[bytes / 2];
  return 2.0 * static_cast<double>(bytes) / seconds;
}

}  // namespace

Calibration calibrate(int thread_count) {
  const int before = threads();
  set_threads(thread_count);
  Calibration result;
  result.threads = thread_count;
  result.fma_flops_per_s_one = checked_fma_rate_one();
  result.fma_flops_per_s_all = result.fma_flops_per_s_one;
  if (thread_count > 1) {
    result.fma_flops_per_s_all = std::max(result.fma_flops_per_s_one, fma_rate_all(thread_count));
  }
  result.copy_bytes_per_s = copy_rate(thread_count);
  set_threads(before);
  return result;
}

double peak_of(const Calibration& calibration, int thread_count) {
  if (thread_count >= calibration.threads) return calibration.fma_flops_per_s_all;
  return std::min(thread_count * calibration.fma_flops_per_s_one, calibration.fma_flops_per_s_all);
}

}  // namespace attn
