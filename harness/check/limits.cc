// Compares variants with softmax attention by its definition in double: for every input (trait
// exact), or at limiting parameters (VariantInfo::limit). Costs q_len · kv_len · head_dim per
// shape.
#include <algorithm>
#include <cmath>
#include <vector>

#include "harness/check/variant_checks.h"

namespace attn {
namespace {

double logit(const Inputs& x, int64_t query, int64_t key) {
  const int64_t dim = x.q.dim(3);
  double sum = 0;
  for (int64_t c = 0; c < dim; c++)
    sum += static_cast<double>(x.q[query * dim + c]) * static_cast<double>(x.k[key * dim + c]);
  return sum / std::sqrt(static_cast<double>(dim));
}

// softmax(q·kᵀ/√d)·v over the visible keys; zeros where there is none.
Tensor softmax_attention_slowly(const Inputs& x, const Mask& mask) {
  const int64_t heads = x.q.dim(1), q_len = x.q.dim(2), kv_len = x.k.dim(2), dim = x.q.dim(3);
  const Tensor out = Tensor::zeros(x.q.shape());
  for (int64_t row = 0; row < x.q.size() / dim; row++) {
    const int64_t matrix = row / q_len;
    int64_t visible = kv_len;
    if (!mask.kv_lengths.empty()) visible = mask.kv_lengths[static_cast<size_t>(matrix / heads)];
    if (mask.causal) visible = std::min(visible, row % q_len + kv_len - q_len + 1);
    if (visible <= 0) continue;
    std::vector<double> weights;
    for (int64_t j = 0; j < visible; j++) weights.push_back(logit(x, row, matrix * kv_len + j));
    const double top = *std::max_element(weights.begin(), weights.end());
    double total = 0;
    for (double& weight : weights) total += weight = std::exp(weight - top);
    for (int64_t c = 0; c < dim; c++) {
      double sum = 0;
      for (int64_t j = 0; j < visible; j++)
        sum += weights[static_cast<size_t>(j)] *
               static_cast<double>(x.v[(matrix * kv_len + j) * dim + c]);
      out[row * dim + c] = static_cast<real>(sum / total);
    }
  }
  return out;
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
  const Inputs x = make_inputs(shape, 41, scale);
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
  for (const AttentionShape& shape : subject.shapes(Lengths::all)) {
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
  for (const AttentionShape& shape : subject.shapes(Lengths::all)) {
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
