// Random streams. rng(seed, "purpose", index) returns an independent stream for each triple; there
// is no global generator. Integers and uniform doubles have the same bits on every platform.
// normal() uses libm and may differ in the last bit.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace attn {

// xoshiro256** (Blackman and Vigna 2018, arXiv:1805.01407), seeded through splitmix64.
class Rng {
 public:
  explicit Rng(uint64_t seed);
  uint64_t bits() {  // 64 uniform bits
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }
  uint64_t below(uint64_t n);               // uniform integer in [0, n), unbiased; n >= 1
  int64_t between(int64_t lo, int64_t hi);  // uniform integer in [lo, hi], ends included
  double uniform();                         // [0, 1), 53 bits
  double uniform(double lo, double hi);
  double normal();  // N(0, 1)
  bool coin() { return (bits() >> 63) != 0; }

 private:
  uint64_t state_[4];
  double cached_normal_ = 0;
  bool has_cached_normal_ = false;
};

Rng rng(uint64_t seed, std::string_view purpose, uint64_t index = 0);

}  // namespace attn
