// Compares variants with softmax attention by its definition in double: for every input (trait
// exact), or at limiting parameters (VariantInfo::limit). Costs q_len · kv_len · head_dim per
// shape.
#include <algorithm>
#include <cmath>
#include <vector>

#include "harness/check/variant_checks.h"

namespace attn {
namespace {

Tensor softmax_attention_slowly(const Inputs& x, const Mask& mask) {
  const oracle::Array out =
      oracle::softmax_attention(oracle_array(x.q), oracle_array(x.k), oracle_array(x.v),
                                {.causal = mask.causal, .lengths = mask.kv_lengths});
  Tensor result(x.q.shape());
  for (int64_t i = 0; i < result.size(); i++)
    result[i] = static_cast<real>(out.x[static_cast<size_t>(i)]);
  return result;
}

// ‖a - b‖ / ‖b‖
double relative_error(const Tensor& a, const Tensor& b) {
  double difference = 0, norm = 0;
  for (int64_t i = 0; i < a.size(); i++) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / std::max(norm, 1e-30));
}

void compare_with_limit(const Attention& attention, const AttentionShape& shape,
                        const std::vector<std::vector<int64_t>>& lengths, double scale,
                        double allowed, Verdict& verdict) {
  const Inputs x = make_inputs(attention, shape, 41, scale);
  for (const std::vector<int64_t>& valid : lengths) {
    const Mask mask = mask_of(shape, valid);
    const double error =
        relative_error(output_of(attention, x, mask), softmax_attention_slowly(x, mask));
    verdict.expect(error, allowed,
                   "relative error against softmax attention {:.1e} ({}{}, inputs of scale {:g})",
                   error, text(shape), valid.empty() ? "" : ", padded", scale);
  }
}

}  // namespace

void check_exact(const Subject& subject, Verdict& verdict) {
  for (const AttentionShape& shape : subject.shapes(ShapeKind::all)) {
    const auto attention = subject.build(shape);
    std::vector<std::vector<int64_t>> lengths = {{}};
    if (subject.info.traits.padding && shape.kv_len > 1)
      lengths.push_back({shape.kv_len - 1, shape.kv_len / 2});
    for (const double scale : {1.0, 5.0})  // 5: saturated weights
      compare_with_limit(*attention, shape, lengths, scale,
                         kIsDouble ? 1e-10 : 1e-5 * scale * scale, verdict);
  }
}

// Without padding: a projection of all keys (Linformer) keeps the rows that padding leaves empty.
void check_limit(const Subject& subject, Verdict& verdict) {
  for (const AttentionShape& shape : subject.shapes(ShapeKind::all)) {
    const auto limit = subject.info.limit(shape);
    if (!limit) continue;
    const Subject limiting(subject.info, subject.info.at_limit(subject.given, *limit),
                           subject.level);
    if (!limiting.can_run(shape)) continue;
    if (limit->sampled && shape.kv_len != 33) continue;  // large, and no sharper elsewhere
    const auto attention = limiting.build(shape);
    if (limit->prepare) limit->prepare(*attention);
    const double allowed = kIsDouble && !limit->sampled ? 1e-10 : limit->tolerance;
    compare_with_limit(*attention, shape, {{}}, limit->input_scale, allowed, verdict);
  }
}

}  // namespace attn
