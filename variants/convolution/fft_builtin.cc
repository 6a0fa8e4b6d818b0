// Transforms without another library's code; see fft.h. Lengths of 16 times a product of 2, 3 and 5
// are transformed as 16 rows (Bailey 1990, J. Supercomputing 4(1)): along the columns, turned,
// transposed, then along what were the rows, all by vectors. Other lengths are a convolution of
// twice the length with a chirp (Bluestein 1970, IEEE Trans. Audio and Electroacoustics 18(4)).
#include <Eigen/Core>
#include <memory>
#include <vector>

#include "core/simd/fourier_pass.h"
#include "core/simd/transpose.h"
#include "variants/convolution/fft.h"

namespace attn {
namespace {

constexpr int64_t kFftRows = 16;  // a vector of AVX-512
constexpr int64_t kFftSkew = 16;  // between arrays whose sizes are powers of two: other cache sets

// What std::vector aligns to a cache line: vectors across lines cost twice the time.
struct alignas(64) Line {
  real numbers[64 / sizeof(real)];
};
using Lines = std::vector<Line>;
size_t lines_needed(int64_t reals) {
  return static_cast<size_t>(reals) * sizeof(real) / sizeof(Line) + 1;
}
real* data_of(Lines& lines) { return lines.data()->numbers; }

// An array of a thread, which grows and stays: a transform that is made again allocates nothing.
real* grown(Lines& lines, int64_t reals) {
  if (lines.size() < lines_needed(reals)) lines = Lines(lines_needed(reals));
  return data_of(lines);
}

}  // namespace

struct Fft::Plan {
  std::vector<FourierPass> columns, rows;
  std::vector<Lines> turns;  // of the passes

  // Of other lengths, which have no passes: e^(-πi·j²/length), and the spectrum of its conjugates.
  std::unique_ptr<const Fft> longer;
  std::vector<Complex> chirp, filter;

  explicit Plan(int64_t length);
  void plan_chirp(int64_t length);
  void convolve(bool is_backward, int64_t length, const Complex* from, Complex* to) const;
  // A pass whose `count` turns are e^(-2πi·part_of(i)/length).
  template <class PartOf>
  void add(std::vector<FourierPass>& to, FourierPass pass, int64_t count, int64_t length,
           const PartOf& part_of) {
    real* const re = data_of(turns.emplace_back(lines_needed(2 * count + kFftSkew)));
    real* const im = re + (count + kFftSkew - 1) / kFftSkew * kFftSkew;
    for (int64_t i = 0; i < count; ++i) {
      const Complex t = turn(-static_cast<double>(part_of(i)) / static_cast<double>(length));
      re[i] = t.real(), im[i] = t.imag();
    }
    pass.turn_re = re, pass.turn_im = im;
    to.push_back(pass);
  }
  // The pass that takes the radix out of a length, as far as it is left.
  void add(std::vector<FourierPass>& to, int radix, int64_t left, int64_t stride) {
    add(to, {radix, left / radix, stride, false, nullptr, nullptr}, left, left,
        [=](int64_t i) { return i / radix * (i % radix); });
  }
};

Fft::Plan::Plan(int64_t length) {
  const int64_t width = length / kFftRows;
  int64_t left = width;
  for (const int radix : {2, 3, 5})
    while (left % radix == 0 && left > 0) left /= radix;
  if (length % kFftRows != 0 || left != 1) {
    plan_chirp(length);
    return;
  }

  add(columns, 4, kFftRows, width);
  add(columns, {4, 1, 4 * width, true, nullptr, nullptr}, length, length,
      [=](int64_t i) { return i / width * (i % width); });
  left = width;
  while (left > 1) {
    const int radix = left % 8 == 0 && left != 16 && most_fourier_radix() == 8 ? 8
                      : left % 4 == 0                                          ? 4
                      : left % 2 == 0                                          ? 2
                      : left % 3 == 0                                          ? 3
                                                                               : 5;
    add(rows, radix, left, length / left);
    left /= radix;
  }
}

void Fft::Plan::plan_chirp(int64_t length) {
  const int64_t least = 2 * length - 1,
                size = kFftRows * fast_length((least + kFftRows - 1) / kFftRows);
  longer = std::make_unique<const Fft>(size);
  for (int64_t j = 0; j < length; ++j)  // an exact part of a turn, however long
    chirp.push_back(
        turn(-static_cast<double>(j * j % (2 * length)) / static_cast<double>(2 * length)));
  Lines lines(lines_needed(4 * size));
  auto* const from = reinterpret_cast<Complex*>(data_of(lines));
  const real share = real(1) / static_cast<real>(size);
  for (int64_t j = 0; j < length; ++j)
    from[j] = from[(size - j) % size] = share * std::conj(chirp[static_cast<size_t>(j)]);
  longer->forward(from, from + size);
  filter.assign(from + size, from + 2 * size);
}

std::shared_ptr<const Fft::Plan> Fft::plan_of(int64_t length) {
  return std::make_shared<const Plan>(length);
}

// j·k is (j² + k² - (j - k)²) / 2. Backward is forward of conjugates, conjugated.
void Fft::Plan::convolve(bool is_backward, int64_t length, const Complex* from, Complex* to) const {
  using Numbers = Eigen::Map<Eigen::Array<Complex, Eigen::Dynamic, 1>>;
  using ConstNumbers = Eigen::Map<const Eigen::Array<Complex, Eigen::Dynamic, 1>>;
  thread_local Lines lines;
  const int64_t size = longer->length();
  Complex* const numbers = reinterpret_cast<Complex*>(grown(lines, 4 * size));
  Numbers spectrum(numbers + size, size), result(to, length);
  const ConstNumbers turned(chirp.data(), length), given(from, length);
  std::fill(numbers + length, numbers + size, Complex(0));
  if (is_backward)
    Numbers(numbers, length) = given.conjugate() * turned;
  else
    Numbers(numbers, length) = given * turned;
  longer->forward(numbers, spectrum.data());
  spectrum *= ConstNumbers(filter.data(), size);
  longer->backward(spectrum.data(), numbers);
  result = Numbers(numbers, length) * turned;
  if (is_backward) result = result.conjugate();
}

void Fft::run(bool is_backward, const Complex* from, Complex* to) const {
  if (plan_->longer) return plan_->convolve(is_backward, length_, from, to);
  thread_local Lines lines;
  // Both buffers are of this thread. In `to`, the two parts of a power of two from 1024 on would be
  // a multiple of 4 KiB apart: they share cache sets, and a load waits for a store whose address
  // has the same last 12 bits.
  const int64_t width = length_ / kFftRows, size = length_ + kFftSkew;
  using Numbers = FourierNumbers<real>;
  real* const mine = grown(lines, 4 * size);
  Numbers a{mine, mine + size}, b{mine + 2 * size, mine + 3 * size};
  const auto pass = [&](const FourierPass& each, Numbers target) {
    fourier_pass(each, {a.re, a.im}, target);
  };
  const Numbers out{reinterpret_cast<real*>(to), nullptr, is_backward};
  fourier_pass(plan_->columns[0], {reinterpret_cast<const real*>(from), nullptr, is_backward}, a);
  pass(plan_->columns[1], b);
  transpose(kFftRows, width, b.re, width, a.re, kFftRows);
  transpose(kFftRows, width, b.im, width, a.im, kFftRows);
  const std::vector<FourierPass>& rows = plan_->rows;
  for (size_t i = 0; i < rows.size(); ++i) {
    pass(rows[i], i + 1 < rows.size() ? b : out);
    std::swap(a, b);
  }
  for (int64_t i = 0; rows.empty() && i < length_; ++i)  // 16 numbers
    to[i] = is_backward ? Complex(a.im[i], a.re[i]) : Complex(a.re[i], a.im[i]);
}

}  // namespace attn
