// Measures the machine with one and with all threads: fused multiply-adds per second, with
// independent chains of FMAs on the instruction set of the kernels, and bytes copied per second,
// with memcpy of data much larger than the caches. Takes about a second.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "core/base/cache.h"
#include "core/base/check.h"
#include "core/base/parallel.h"
#include "core/simd/fma_chains.h"
#include "core/simd/product.h"
#include "harness/measure/calibrate.h"

namespace attn {
namespace {

// A trial is far shorter than the time slice of a scheduler, so that on a busy machine most are
// undisturbed.
constexpr int64_t kRounds = 50'000;  // 0.1 to 0.3 ms
constexpr int kTrials = 150;
constexpr int kProductTrials = 40;
constexpr int kCopyTrials = 3;
constexpr int kAttempts = 3;
constexpr int kTogetherAttempts = 8;
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

// Operands that the compiler cannot see; x·0.5 + 0.25 stays between 0 and the number of chains,
// never denormal.
volatile real g_factor = real(0.5), g_offset = real(0.25);
thread_local volatile real g_sink = 0;

double trial_flops() { return static_cast<double>(kRounds * fma_round_flops()); }

void fma_trial() { g_sink = fma_chains(kRounds, g_factor, g_offset); }

// The best trial: whatever disturbs one makes it slower, never faster.
double fma_rate_one() { return trial_flops() / seconds_of(kTrials, fma_trial).front(); }

// Every thread times itself while the others run, and its median counts: a best trial could fall
// where another thread was done.
double fma_rate_together(int thread_count) {
  std::vector<double> rates(static_cast<size_t>(thread_count));
  parallel_for(thread_count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      rates[static_cast<size_t>(t)] = trial_flops() / seconds_of(kTrials, fma_trial)[kTrials / 2];
    }
  });
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

// The best of several attempts: a neighbour may take a core for the tens of milliseconds of one. An
// attempt in which the threads reach what they reach alone ends the series.
double fma_rate_all(int thread_count, double one) {
  double rate = 0;
  for (int attempt = 0; attempt < kTogetherAttempts && rate < 0.95 * thread_count * one; ++attempt)
    rate = std::max(rate, fma_rate_together(thread_count));
  return std::max(rate, one);
}

double product_rate() {
  const real value = g_factor;
  const std::vector<real> a(kProduct * kProduct, value), b = a;
  std::vector<real> c(kProduct * kProduct);
  const Left left{a.data(), kProduct, 1};
  const Right right{b.data(), kProduct};
  const double seconds = seconds_of(kProductTrials, [&] {
                           product(kProduct, kProduct, kProduct, left, right, c.data(), kProduct);
                         }).front();
  g_sink = g_sink + c[0];
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
  const int64_t cache = cache_sizes().l3.value_or(0);
  return static_cast<size_t>(std::clamp(2 * cache, kLeast, kMost));
}

struct CopyRates {
  double one = 0, all = 0;
};

CopyRates copy_rates(int thread_count) {
  const size_t bytes = copy_bytes();
  const auto from = std::make_unique_for_overwrite<char[]>(bytes),
             to = std::make_unique_for_overwrite<char[]>(bytes);
  const auto each = [&](int count, const auto& body) {
    const auto chunk = static_cast<int64_t>(bytes) / count + 1;
    parallel_for(static_cast<int64_t>(bytes), chunk, [&](int64_t begin, int64_t end) {
      body(to.get() + begin, from.get() + begin, static_cast<size_t>(end - begin));
    });
  };
  // Pages are made here, near the thread that copies them when all do.
  each(thread_count, [](char* target, char* source, size_t size) {
    std::memset(target, 1, size);
    std::memset(source, 2, size);
  });
  const auto rate = [&](int count) {
    const auto copy = [](char* target, const char* source, size_t size) {
      std::memcpy(target, source, size);
    };
    const double seconds = seconds_of(kCopyTrials, [&] { each(count, copy); }).front();
    g_sink = g_sink + to[bytes / 2];
    return 2.0 * static_cast<double>(bytes) / seconds;
  };
  const double one = rate(1);
  return {one, thread_count > 1 ? std::max(one, rate(thread_count)) : one};
}

}  // namespace

Calibration calibrate(int thread_count) {
  const ScopedThreads scoped(thread_count);
  Calibration result;
  result.threads = thread_count;
  result.fma_flops_per_s_one = checked_fma_rate_one();
  result.fma_flops_per_s_all = result.fma_flops_per_s_one;
  if (thread_count > 1)
    result.fma_flops_per_s_all = fma_rate_all(thread_count, result.fma_flops_per_s_one);
  const CopyRates copied = copy_rates(thread_count);
  result.copy_bytes_per_s_one = copied.one;
  result.copy_bytes_per_s = copied.all;
  return result;
}

double peak_of(const Calibration& calibration, int thread_count) {
  if (thread_count >= calibration.threads) return calibration.fma_flops_per_s_all;
  return std::min(thread_count * calibration.fma_flops_per_s_one, calibration.fma_flops_per_s_all);
}

double bandwidth_of(const Calibration& calibration, int thread_count) {
  if (thread_count >= calibration.threads) return calibration.copy_bytes_per_s;
  return std::min(thread_count * calibration.copy_bytes_per_s_one, calibration.copy_bytes_per_s);
}

double roofline_of(const Calibration& calibration, int thread_count, double flops, double bytes) {
  return std::max(flops / peak_of(calibration, thread_count),
                  bytes / bandwidth_of(calibration, thread_count));
}

}  // namespace attn
