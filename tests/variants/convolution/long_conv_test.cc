// long_conv against the sum written out, by sums and by Fourier transforms; the identity of a delta
// filter; shifts; and the trap of a transform that wraps around.
#include "core/ops/ops.h"
#include "tests/variants/mixers.h"
#include "variants/reference/long_convolutions.h"

namespace attn::long_conv_test {
namespace {

using namespace mixers;

const std::vector<std::string> kForms = {"direct", "fft", "auto"};

// The usual cases, and more channels than a strip of 16 holds.
std::vector<Case> strips(bool causal) {
  std::vector<Case> all = cases(causal);
  all.push_back({2, 2, 19, 20, causal, {19, 7}});
  return all;
}

TEST(LongConv, EqualsTheSumOverDistances) {
  for (const std::string& form : kForms)
    for (const bool causal : {false, true})
      for (const Case& at : strips(causal))
        expect_twin("long_conv", at, {{"form", form}}, [&](const auto& x, const auto& w) {
          return oracle::long_convolution(x, w[0], w[1], causal, {at.lengths});
        });
}

// Two kinds of lengths: one that is transformed as it is, and one that zeros are added to.
TEST(LongConv, BothFormsAgreeBeyondFourThousandPositions) {
  for (const auto& [n, causal] : {std::pair<int64_t, bool>{4800, false}, {5001, true}}) {
    const Case at{1, 1, n, 3, causal, {}};
    const Tensor x = Tensor::normal(at.rows(), rng(1, "x"));
    std::vector<Tensor> out, gradient;
    for (const std::string& form : {kForms[0], kForms[1]}) {
      const auto mixer = build("long_conv", at, {{"form", form}});
      out.push_back(as_mixer(*mixer)->mix(Var(x), at.mask()).value());
      as_mixer(*mixer)->mix(Var(x, true), at.mask()).backward(out.front());
      gradient.push_back(mixer->weights()[0].value.grad());
    }
    EXPECT_LE(distance(out[1], out[0]), kIsDouble ? 1e-13 : 2e-6) << n;
    EXPECT_LE(bridge::relative_error(gradient[1], bridge::array_of(gradient[0]).x),
              kIsDouble ? 1e-13 : 5e-6)
        << n;
  }
}

TEST(LongConv, ADeltaFilterIsTheIdentity) {
  for (const bool causal : {false, true}) {
    const Case at{2, 2, 300, 3, causal, {}};
    const auto mixer = build("long_conv", at, {});
    const Var filter = mixer->weights()[0].value, skip = mixer->weights()[1].value;
    const Tensor delta = Tensor::zeros(filter.shape());
    std::fill_n(delta.data() + (causal ? 0 : 299) * 6, 6, real(1));
    filter.set_value(delta), skip.set_value(Tensor::zeros(skip.shape()));
    const Tensor x = Tensor::normal(at.rows(), rng(2, "x"));
    EXPECT_LE(distance(as_mixer(*mixer)->mix(Var(x), at.mask()).value(), x), 20 * kEpsilon);
  }
}

// The first rows of a shorter input are the same: the filter is of distances, and nothing wraps
// around from the end.
TEST(LongConv, RegressionTheEndDoesNotWrapAroundToTheBeginning) {
  const Case at{1, 1, 512, 4, true, {}};
  const auto mixer = build("long_conv", at, {{"form", std::string("fft")}});
  const Tensor x = Tensor::normal(at.rows(), rng(3, "x"));
  const Tensor all = as_mixer(*mixer)->mix(Var(x), at.mask()).value();
  for (const int64_t n : {1, 100, 511}) {
    const Tensor first = as_mixer(*mixer)->mix(Var(rows_of(x, 0, 0, n)), at.mask()).value();
    EXPECT_LE(distance(first, rows_of(all, 0, 0, n)), 20 * kEpsilon) << n;
  }
  // Zeros in front move every row by their number.
  const Tensor moved = Tensor::zeros(at.rows());
  std::copy_n(x.data(), 412 * 4, moved.data() + 100 * 4);
  const Tensor out = as_mixer(*mixer)->mix(Var(moved), at.mask()).value();
  EXPECT_LE(distance(rows_of(out, 0, 100, 512), rows_of(all, 0, 0, 412)), 20 * kEpsilon);
}

TEST(LongConv, TheDecoderHoldsEveryRow) {
  const auto mixer = build("long_conv", {1, 2, 400, 8, true, {}}, {});
  EXPECT_EQ(mixer->decoder(3, 400)->state_bytes(), 3 * 400 * 16 * int64_t{sizeof(real)});
  EXPECT_EQ(mixer->decoder(3, 40)->state_bytes(), 3 * 40 * 16 * int64_t{sizeof(real)});
}

TEST(LongConv, RefusesWhatItsFilterDoesNotReach) {
  const Case at{1, 1, 10, 4, true, {}};
  const auto mixer = build("long_conv", at, {});
  EXPECT_THROW(as_mixer(*mixer)->mix(Var(Tensor::zeros({1, 11, 4})), at.mask()), Error);
  EXPECT_THROW(mixer->decoder(1, 11), Error);
}

}  // namespace
}  // namespace attn::long_conv_test
