// The op and its cost; see long_convolution.h. The two forms are in direct_convolution.cc and
// fft_convolution.cc.
#include "variants/convolution/long_convolution.h"

#include "core/base/check.h"
#include "core/base/workers.h"
#include "variants/convolution/convolution_strips.h"
#include "variants/convolution/fft.h"

namespace attn {
namespace {

namespace forms = long_convolutions;

bool is_direct(int64_t len, ConvolutionForm form) {
  return form == ConvolutionForm::automatic ? len <= forms::kLongestDirect
                                            : form == ConvolutionForm::direct;
}

void check(const Var& x, const Var& filter, const Var& skip, bool causal) {
  const int64_t len = x.dim(2), width = x.dim(1) * x.dim(3);
  const bool fits =
      filter.shape().rank() == 2 && filter.dim(1) == width &&
      (causal ? filter.dim(0) >= len : filter.dim(0) % 2 == 1 && filter.dim(0) >= 2 * len - 1);
  ATTN_CHECK(fits, "a {} filter of {} for {}: expected [{}{}, {}]", causal ? "causal" : "two-sided",
             filter.shape().str(), x.shape().str(),
             causal ? "at least " : "an odd number, at least ", causal ? len : 2 * len - 1, width);
  ATTN_CHECK(!skip.defined() || skip.shape() == Shape({width}), "a skip of {} for {} channels",
             skip.defined() ? skip.shape().str() : "", width);
}

}  // namespace

ParamSpec convolution_form() {
  return {"form",
          {"auto", "direct", "fft"},
          "direct: one sum after the other; auto: direct up to 256 positions, then fft"};
}

std::string convolution_form_note() {
  return "A Fourier transform rounds with the size of all of its numbers: beyond 256 positions "
         "later "
         "positions move an earlier output by about 1e-7 of the largest output (float). "
         "form=direct "
         "has no such leak.";
}

ConvolutionForm form_of(const Params& params) {
  const std::string& form = params.text("form");
  if (form == "auto") return ConvolutionForm::automatic;
  return form == "fft" ? ConvolutionForm::fft : ConvolutionForm::direct;
}

bool uses_fourier(const Params& params) { return form_of(params) == ConvolutionForm::fft; }

Var long_convolution(const Var& x, const Var& filter, const Var& skip, const LongConvolution& how) {
  check(x, filter, skip, how.causal);
  const forms::Problem p{x.dim(0),
                         x.dim(1),
                         x.dim(2),
                         x.dim(3),
                         filter.dim(0),
                         how.causal,
                         {how.lengths.begin(), how.lengths.end()}};
  const bool direct = is_direct(p.len, how.form);
  const Tensor out = Tensor::zeros(x.shape());
  const Tensor skipped = skip.defined() ? skip.value() : Tensor();
  const forms::Arrays arrays{x.value().data(), filter.value().data(), skipped.data()};
  direct ? forms::direct_forward(p, arrays, out.data()) : forms::fft_forward(p, arrays, out.data());
  const auto backward = [p, direct, from = x.value(), taps = filter.value(), skipped](
                            const Tensor& grad, std::span<Tensor> grads) {
    const forms::Arrays a{from.data(), taps.data(), skipped.data()};
    const forms::Gradients g{grad.data(), grads[0].data(), grads[1].data(),
                             grads.size() > 2 ? grads[2].data() : nullptr};
    direct ? forms::direct_backward(p, a, g) : forms::fft_backward(p, a, g);
  };
  if (skip.defined()) return custom_op(out, {x, filter, skip}, backward);
  return custom_op(out, {x, filter}, backward);
}

Cost long_convolution_cost(const AttentionShape& s, const LongConvolution& how) {
  const forms::Problem p{
      s.batch,    s.heads, s.kv_len, s.head_dim, how.causal ? s.kv_len : 2 * s.kv_len - 1,
      how.causal, {}};
  const auto channels = static_cast<double>(p.width()), batch = static_cast<double>(s.batch),
             len = static_cast<double>(s.kv_len), numbers = batch * channels * len;
  Cost cost{.bytes = sizeof(real) * (2 * numbers + channels * static_cast<double>(p.taps)),
            .peak_bytes = sizeof(real) * numbers,
            .state_bytes = sizeof(real) * numbers};
  if (is_direct(p.len, how.form)) {
    cost.flops = batch * channels * (how.causal ? len * (len + 1) : 2 * len * len);
    return cost;
  }
  const double transform = fft_flops(fast_length(s.kv_len));
  cost.flops = channels * transform * (1 + 2 * batch);
  cost.backward_flops = channels * transform * (2 + 4 * batch);
  cost.peak_bytes +=
      static_cast<double>(workspace_bytes(p.tasks(), forms::fft_workspace_reals(p.len)));
  return cost;
}

}  // namespace attn
