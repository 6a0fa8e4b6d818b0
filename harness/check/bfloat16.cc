// Compares outputs and decode steps in bfloat16 with the variant's reference on the same rounded
// inputs (without one: with its float32 forward), and what a pass holds with what it declares.
// Costs a forward pass of the reference and as many decode steps as positions for each shape.
//
// What rounding allows, in units of 2^-8, the largest relative error of one rounding: the output is
// rounded once, by at most 1 of itself. A variant that reads bfloat16 rounds its weights too: each
// weight is off by at most 1 of itself, the errors are independent, and their sum cancels as the
// sum of the weighted values does, so that 2 of the largest output are generous. Rounding is not
// biased: over many numbers the mean error is near 0, and that of truncation is about 0.7.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/parallel.h"
#include "harness/check/forgetting.h"
#include "harness/check/variant_checks.h"
#include "variants/api/counted_cost.h"

namespace attn {
namespace {

constexpr double kOfItself = 1, kOfTheLargest = 2;  // units of rounding
constexpr double kMostBias = 0.25;                  // units, of at least so many numbers:
constexpr int64_t kEnoughForBias = 2000;            // their mean error has a deviation below 0.02
constexpr double kCostShare = 0.05, kCostSlack = 8 << 10;  // as in cost.cc

struct Rounded {
  BFloat16Tensor q, k, v;
  Inputs wide;  // the same numbers, and gates, which are not rounded
};

Rounded rounded_inputs(const Attention& attention, const AttentionShape& shape,
                       const std::vector<int64_t>& lengths) {
  const Inputs x = make_inputs(attention, shape, 81);
  for (int64_t b = 0; b < std::ssize(lengths); b++) {
    constexpr real kNaN = std::numeric_limits<real>::quiet_NaN();
    for (const Tensor& each : x.of_keys())
      fill_from(each, lengths[static_cast<size_t>(b)], kNaN, b);
  }
  Rounded made{rounded(x.q), rounded(x.k), rounded(x.v), {}};
  made.wide = {widened(made.q), widened(made.k), widened(made.v), x.gates};
  return made;
}

oracle::Array wanted_of(const Subject& subject, const Attention& attention, const Inputs& x,
                        const Mask& mask) {
  if (!subject.info.reference) return oracle_array(output_of(attention, x, mask));
  return subject.info.reference(reference_inputs_of(attention, x, mask));
}

// `first`: the row of `wanted` that the first row of `got` [batch, heads, rows, dim] stands for.
void compare_to_wanted(const Tensor& got, const oracle::Array& wanted, int64_t first,
                       bool is_native, const std::string& what, Verdict& verdict) {
  double largest_wanted = 0.1;  // as in reference.cc
  for (const double value : wanted.x) largest_wanted = std::max(largest_wanted, std::abs(value));
  const int64_t rows = got.dim(2), dim = got.dim(3);
  const double rest = largest_wanted * (tolerance(wanted.len) +
                                        (is_native ? kOfTheLargest * kBFloat16Rounding : 0.0));
  double worst_share = 0, error = 0, bias = 0, size = 0;
  int64_t worst_row = 0;
  for (int64_t at = 0; at < got.size(); at++) {
    const int64_t row = at / dim % rows;
    const double want =
        wanted
            .x[static_cast<size_t>((at / dim / rows * wanted.len + first + row) * dim + at % dim)];
    if (!std::isfinite(got[at]))
      return verdict.require(false, "row {} is not finite ({})", first + row, what);
    const double off = static_cast<double>(got[at]) - want;
    const double share = std::abs(off) / (kOfItself * kBFloat16Rounding * std::abs(want) + rest);
    bias += want < 0 ? -off : off;
    size += std::abs(want);
    if (share <= worst_share) continue;
    worst_share = share, error = std::abs(off), worst_row = first + row;
    if (std::isnan(share)) break;
  }
  verdict.expect(worst_share, 1,
                 "row {} is off by {:.1e}, {:.2f} times what rounding to bfloat16 allows ({})",
                 worst_row, error, worst_share, what);
  if (got.size() < kEnoughForBias || size == 0) return;
  const double units = std::abs(bias / size) / kBFloat16Rounding;
  verdict.expect(units, kMostBias,
                 "outputs are off by {:.2f} of 2^-8 in the mean: rounding to the nearest has no "
                 "bias ({})",
                 units, what);
}

void compare_forward(const Subject& subject, const AttentionShape& shape,
                     const std::vector<int64_t>& lengths, Verdict& verdict) {
  const auto attention = subject.build(shape);
  const Rounded x = rounded_inputs(*attention, shape, lengths);
  const Mask mask = mask_of(shape, lengths);
  const Tensor got = widened(attention->forward(x.q, x.k, x.v, mask, leaves_of(x.wide.gates)));
  compare_to_wanted(got, wanted_of(subject, *attention, x.wide, mask), 0,
                    attention->reads_bfloat16(), text(shape) + (lengths.empty() ? "" : ", padded"),
                    verdict);
}

// Of the first `count` heads, each batch entry.
Tensor first_heads(const Tensor& x, int64_t count) { return part(x, 1, 0, count); }

void compare_decoding(const Subject& subject, AttentionShape shape, int64_t kv_heads,
                      Verdict& verdict) {
  shape.causal = true;
  shape.q_len = shape.kv_len;
  if (subject.info.why_no_decoder(shape, subject.params)) return;
  const auto attention = subject.build(shape);
  const auto decoder = attention->decoder(shape.batch, shape.kv_len, kv_heads, Dtype::bfloat16);
  const Rounded x = rounded_inputs(*attention, shape, {});
  const BFloat16Tensor k = rounded(first_heads(x.wide.k, kv_heads)),
                       v = rounded(first_heads(x.wide.v, kv_heads));
  const Forgetting* const forgetting = as_forgetting(*attention);
  // What forgets at the end of a prompt alone grows from there on: its declared state is that after
  // a prompt and one step.
  const bool is_prompt = forgetting && forgetting->forgets_prompts_alone();
  const int64_t group = shape.heads / kv_heads, n = shape.kv_len,
                prefill = is_prompt ? n - 1 : n / 2;
  const auto wanted_steps = [&] {
    const ForgettingCase c{*forgetting, *attention, shape, kv_heads};
    return forgetting->step_answers(
        c.reference_inputs({x.wide.q, widened(k), widened(v), x.wide.gates}),
        DecodeSteps::after(prefill, n, kv_heads));
  };
  const oracle::Array wanted = forgetting
                                   ? wanted_steps()
                                   : wanted_of(subject, *attention,
                                               {x.wide.q, widened(repeat_heads(k, group)),
                                                widened(repeat_heads(v, group)), x.wide.gates},
                                               mask_of(shape));
  const auto positions = [](const BFloat16Tensor& of, int64_t begin, int64_t end) {
    return rounded(part(widened(of), 2, begin, end));
  };
  decoder->extend(positions(k, 0, prefill), positions(v, 0, prefill), positions(x.q, 0, prefill),
                  part(x.wide, 2, 0, prefill).gates);
  const Tensor rows(x.wide.q.shape().with(2, n - prefill));
  const BFloat16Tensor out(x.q.shape().with(2, 1));
  for (int64_t i = prefill; i < n; i++) {
    decoder->step(positions(x.q, i, i + 1), positions(k, i, i + 1), positions(v, i, i + 1), out,
                  part(x.wide, 2, i, i + 1).gates);
    for (int64_t at = 0; at < out.size(); at++)
      rows[(at / shape.head_dim * (n - prefill) + i - prefill) * shape.head_dim +
           at % shape.head_dim] = to_float(out.data()[at]);
  }
  compare_to_wanted(
      rows, wanted, prefill, decoder->keeps_bfloat16(),
      fmt::format("decoded, {}, {} heads of keys for {}", text(shape), kv_heads, shape.heads),
      verdict);
  shape.dtype = Dtype::bfloat16;
  const double declared = attention->state_bytes(shape, kv_heads),
               held = static_cast<double>(decoder->state_bytes());
  verdict.expect(std::max(0.0, std::abs(held - declared) - kCostSlack) / declared, kCostShare,
                 "a state of {:.4g} bytes is held, {:.4g} declared ({})", held, declared,
                 text(shape));
}

void compare_cost(const Subject& subject, AttentionShape shape, Verdict& verdict) {
  const ScopedThreads one_thread(1);
  shape.dtype = Dtype::bfloat16;
  const auto attention = subject.build(shape);
  const std::optional<Cost> declared = attention->declared_cost(shape);
  if (!declared) return;
  const CountedCost seen = counted_cost(*attention, shape);
  verdict.expect(std::max(0.0, std::abs(seen.peak_bytes - declared->peak_bytes) - kCostSlack) /
                     declared->peak_bytes,
                 kCostShare, "peak of {:.4g} bytes measured in bfloat16, {:.4g} declared ({})",
                 seen.peak_bytes, declared->peak_bytes, text(shape));
  verdict.expect(std::abs(seen.flops / declared->flops - 1), kCostShare,
                 "{:.4g} FLOPs measured in bfloat16, {:.4g} declared ({})", seen.flops,
                 declared->flops, text(shape));
}

void compare_at(const Subject& subject, const AttentionShape& shape, Verdict& verdict) {
  if (!subject.can_run(shape)) return;
  compare_forward(subject, shape, {}, verdict);
  const int64_t n = shape.kv_len;
  if (!subject.info.traits.padding || n < 8) return;
  std::vector<int64_t> lengths;
  for (int64_t b = 0; b < shape.batch; b++) lengths.push_back(n - 3 - 2 * b);
  compare_forward(subject, shape, lengths, verdict);
}

}  // namespace

void check_bfloat16(const Subject& subject, Verdict& verdict) {
  if (subject.only) {
    const int64_t kv_heads = subject.only_kv_heads;
    if (kv_heads == 0) compare_at(subject, *subject.only, verdict);
    if (subject.only->causal)
      compare_decoding(subject, *subject.only, kv_heads ? kv_heads : subject.only->heads, verdict);
    return;
  }
  struct Size {
    int64_t q_len, kv_len, batch, heads, head_dim;
  };
  std::vector<Size> sizes = {{1, 1, 2, 1, 5}, {67, 67, 2, 2, 16}, {34, 71, 1, 2, 33}};
  if (subject.full()) sizes.insert(sizes.end(), {{257, 257, 1, 2, 64}, {5, 5, 1, 1, 129}});
  for (const Size& size : sizes)
    for (const bool causal : {false, true}) {
      const AttentionShape shape{.batch = size.batch,
                                 .heads = size.heads,
                                 .q_len = size.q_len,
                                 .kv_len = size.kv_len,
                                 .head_dim = size.head_dim,
                                 .causal = causal};
      compare_at(subject, shape, verdict);
      if (!causal || size.q_len != size.kv_len) continue;
      compare_decoding(subject, shape, size.heads, verdict);
      if (size.heads > 1) compare_decoding(subject, shape, 1, verdict);
    }
  AttentionShape shape{.batch = 2, .heads = 2, .q_len = 300, .kv_len = 300, .head_dim = 16};
  shape.causal = !subject.can_run(shape);
  if (subject.can_run(shape)) compare_cost(subject, shape, verdict);
}

}  // namespace attn
