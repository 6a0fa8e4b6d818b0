// Discrete Fourier transforms of complex numbers. A transform of n numbers counts 5·n·log2(n)
// FLOPs, as FFTW's authors count (Frigo and Johnson 2005, Proc. IEEE 93(2)). What transforms is
// chosen when the build is configured, by -DATTN_FFT: fft_fftw.cc or fft_builtin.cc.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/real.h"

namespace attn {

using Complex = std::complex<real>;

// A plan for one length: made once for a process, shared by all threads, without a search by time,
// so that every run adds in the same order and gives the same bits. Tables and the space that a
// transform needs are not of the counted pool: about 32 bytes for each number in
// float, 16 of them for each thread.
class Fft {
 public:
  // The plan of this length, at least 1. Thread-safe; no allocation where the plan exists.
  static std::shared_ptr<const Fft> of(int64_t length);
  explicit Fft(int64_t length);
  Fft(const Fft&) = delete;
  Fft& operator=(const Fft&) = delete;

  // to_k = Σ_j from_j·e^(∓2πi·j·k/length): forward with the minus, backward with the plus and not
  // divided by the length. Both arrays are aligned to 64 bytes and do not overlap.
  void forward(const Complex* from, Complex* to) const { run(false, from, to); }
  void backward(const Complex* from, Complex* to) const { run(true, from, to); }

  int64_t length() const { return length_; }
  // e^(πi·j/(2·length)) for j < length, a quarter of a turn in all; see long_convolution.cc.
  const std::vector<Complex>& quarter_turn() const { return quarter_turn_; }
  static Complex turn(double part);  // e^(2πi·part)

 private:
  struct Plan;  // of the chosen source, as is what follows
  static std::shared_ptr<const Plan> plan_of(int64_t length);
  void run(bool is_backward, const Complex* from, Complex* to) const;

  int64_t length_;
  std::shared_ptr<const Plan> plan_;
  std::vector<Complex> quarter_turn_;
};

double fft_flops(int64_t length);  // of one transform

// The shortest length of at least `least` that transforms fast: a power of two, times 1, 3, 5, 9 or
// 15. At most a quarter above `least`.
int64_t fast_length(int64_t least);

}  // namespace attn
