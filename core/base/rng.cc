// xoshiro256** seeded by splitmix64 over an FNV-1a hash of the purpose; see rng.h.
#include "core/base/rng.h"

#include <cmath>

#include "core/base/check.h"

namespace attn {
namespace {

uint64_t splitmix(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace

Rng::Rng(uint64_t seed) {
  for (uint64_t& word : state_) word = splitmix(seed);
}

uint64_t Rng::below(uint64_t n) {
  ATTN_CHECK(n >= 1, "Rng::below needs n >= 1, got 0");
  const uint64_t reject_under = (0 - n) % n;  // 2^64 mod n: dropping these leaves a multiple of n
  for (;;) {
    const uint64_t x = bits();
    if (x >= reject_under) return x % n;
  }
}

int64_t Rng::between(int64_t lo, int64_t hi) {
  ATTN_CHECK(lo <= hi, "Rng::between needs lo <= hi, got {} and {}", lo, hi);
  const uint64_t count =
      static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo) + 1;  // 0: all of them
  return static_cast<int64_t>(static_cast<uint64_t>(lo) + (count ? below(count) : bits()));
}

double Rng::uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }

double Rng::uniform(double lo, double hi) { return lo + (hi - lo) * uniform(); }

double Rng::normal() {  // Marsaglia's polar method
  if (has_cached_normal_) {
    has_cached_normal_ = false;
    return cached_normal_;
  }
  double u, v, s;
  do {
    u = 2 * uniform() - 1;
    v = 2 * uniform() - 1;
    s = u * u + v * v;
  } while (s >= 1 || s == 0);
  const double scale = std::sqrt(-2 * std::log(s) / s);
  cached_normal_ = v * scale;
  has_cached_normal_ = true;
  return u * scale;
}

Rng rng(uint64_t seed, std::string_view purpose, uint64_t index) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : purpose) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  uint64_t state = seed;
  state = splitmix(state) ^ hash;
  state = splitmix(state) ^ index;
  return Rng(splitmix(state));
}

}  // namespace attn
