// See witness.h. The median of some bursts counts: an interrupt lengthens a few of them, a
// neighbour nearly all.
#include "harness/measure/witness.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "core/base/parallel.h"
#include "core/simd/product.h"

namespace attn {
namespace {

constexpr int64_t kSide = 48;  // three matrices of floats: 27 KiB, below the least cache of 32 KiB
constexpr int kProducts = 40;  // of a burst, about 0.1 ms
constexpr int kProductBursts = 9;
constexpr size_t kCopied = size_t{4} << 20;  // bytes; beyond second-level caches of 1 or 2 MiB
constexpr int kCopyBursts = 5;

template <size_t count, class Body>
double median_seconds(const Body& body) {
  std::array<double, count> seconds;
  for (double& value : seconds) {
    const auto start = std::chrono::steady_clock::now();
    body();
    value = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  std::nth_element(seconds.begin(), seconds.begin() + count / 2, seconds.end());
  return seconds[count / 2];
}

}  // namespace

struct WitnessStand::Operands {
  std::vector<real> a, b, c;
  std::unique_ptr<char[]> from, to;

  Witness look() {
    const double product_s = median_seconds<kProductBursts>([&] {
      for (int i = 0; i < kProducts; i++)
        product(kSide, kSide, kSide, Left{a.data(), kSide, 1}, Right{b.data(), kSide}, c.data(),
                kSide);
    });
    const double copy_s =
        median_seconds<kCopyBursts>([&] { std::memcpy(to.get(), from.get(), kCopied); });
    return {.flops_per_s = 2.0 * kSide * kSide * kSide * kProducts / product_s,
            .copy_bytes_per_s = 2.0 * kCopied / copy_s};
  }
};

WitnessStand::WitnessStand(int threads)
    : operands_(std::make_unique<Operands[]>(static_cast<size_t>(threads))), threads_(threads) {
  const ScopedThreads scoped(threads_);
  parallel_for(threads_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; t++) {  // pages are made by the thread that uses them
      Operands& mine = operands_[static_cast<size_t>(t)];
      mine.a.assign(kSide * kSide, real(0.5));
      mine.b = mine.a;
      mine.c = mine.a;
      mine.from = std::make_unique<char[]>(kCopied);
      mine.to = std::make_unique<char[]>(kCopied);
    }
  });
}

WitnessStand::~WitnessStand() = default;

Witness WitnessStand::look() const {
  const ScopedThreads scoped(threads_);
  std::vector<Witness> found(static_cast<size_t>(threads_));
  parallel_for(threads_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; t++)
      found[static_cast<size_t>(t)] = operands_[static_cast<size_t>(t)].look();
  });
  Witness slowest = found[0];
  for (const Witness& each : found) slowest = slower_of(slowest, each);
  return slowest;
}

Witness slower_of(const Witness& a, const Witness& b) {
  return {.flops_per_s = std::min(a.flops_per_s, b.flops_per_s),
          .copy_bytes_per_s = std::min(a.copy_bytes_per_s, b.copy_bytes_per_s)};
}

}  // namespace attn
