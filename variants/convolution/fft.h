// Discrete Fourier transforms of complex numbers, by FFTW (fftw.org). A transform of n numbers
// counts 5·n·log2(n) FLOPs, as FFTW's authors count (Frigo and Johnson 2005, Proc. IEEE 93(2)).
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/real.h"

namespace attn {

using Complex = std::complex<real>;

// A plan for one length: made once for a process, shared by all threads, without a search by time,
// so that every run adds in the same order and gives the same bits. FFTW's tables, and those here,
// are not of the counted pool: about 24 bytes for each number.
class Fft {
 public:
  // The plan of this length, at least 1. Thread-safe; no allocation where the plan exists.
  static std::shared_ptr<const Fft> of(int64_t length);
  explicit Fft(int64_t length);
  ~Fft();
  Fft(const Fft&) = delete;
  Fft& operator=(const Fft&) = delete;

  // to_k = Σ_j from_j·e^(∓2πi·j·k/length): forward with the minus, backward with the plus and not
  // divided by the length. Both arrays are aligned to 64 bytes and do not overlap.
  void forward(const Complex* from, Complex* to) const { run(false, from, to); }
  void backward(const Complex* from, Complex* to) const { run(true, from, to); }

  int64_t length() const { return length_; }
  // e^(πi·j/(2·length)) for j < length, a quarter of a turn in all; see long_convolution.cc.
  const std::vector<Complex>& quarter_turn() const { return quarter_turn_; }

 private:
  void run(bool is_backward, const Complex* from, Complex* to) const;
  void combine(bool is_backward, Complex* to) const;

  int64_t length_, radix_;         // radix_ transforms of length_ / radix_ numbers are combined
  void* plans_[2] = {};            // forward, backward
  std::vector<Complex> twiddles_;  // e^(-2πi·r·k/length) at [r - 1, k]
  std::vector<Complex> quarter_turn_;
};

double fft_flops(int64_t length);  // of one transform

// The shortest length of at least `least` that transforms fast: a power of two, times 1, 3, 5, 9 or
// 15. At most a quarter above `least`.
int64_t fast_length(int64_t least);

}  // namespace attn
