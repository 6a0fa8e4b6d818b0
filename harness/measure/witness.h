// How fast the machine is at this moment: short bursts of work that never changes, timed beside a
// measurement. A burst that is slower than others of the same sweep tells of a neighbour that takes
// time, clock rate, cache or bandwidth away.
#pragma once

#include <memory>

namespace attn {

struct Witness {
  // Of a product of matrices that fit the first-level cache, and of a copy that does not fit the
  // second: of the slowest thread, a second.
  double flops_per_s = 0, copy_bytes_per_s = 0;
};

class WitnessStand {
 public:
  // Makes the operands of `threads` threads, 8.03 MiB each.
  explicit WitnessStand(int threads);
  ~WitnessStand();
  WitnessStand(const WitnessStand&) = delete;
  WitnessStand& operator=(const WitnessStand&) = delete;

  Witness look() const;  // takes about 3 ms

 private:
  struct Operands;
  const std::unique_ptr<Operands[]> operands_;  // of each thread
  const int threads_;
};

// The slower of the two in each.
Witness slower_of(const Witness& a, const Witness& b);

}  // namespace attn
