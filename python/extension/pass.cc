// See pass.h. Compiled in float and in double, as ATTN_DOUBLE says.
#include "python/extension/pass.h"

#include <algorithm>
#include <optional>

#include "core/base/no_grad.h"
#include "core/base/parallel.h"
#include "python/extension/tensors.h"
#include "variants/catalog.h"

namespace attn_python {
namespace ATTN_PRECISION {
namespace {

std::unique_ptr<attn::Attention> build(const PassRequest& request,
                                       attn::Dtype dtype = attn::Dtype::float32) {
  const attn::VariantInfo& info = attn::find_variant(request.variant);
  const attn::AttentionShape shape{.batch = request.q.shape.at(0),
                                   .heads = request.q.shape.at(1),
                                   .q_len = request.q.shape.at(2),
                                   .kv_len = request.k.shape.at(2),
                                   .head_dim = request.q.shape.at(3),
                                   .causal = request.causal,
                                   .dtype = dtype};
  const attn::Params params(info.name, info.params, request.params);
  if (const auto reason = info.why_not(shape, params))
    attn::throw_error(fmt::format("{} {}{}", info.name, *reason,
                                  info.lacks_causal(shape) ? "; say causal=True" : ""));
  return info.build({.heads = shape.heads,
                     .head_dim = shape.head_dim,
                     .max_len = shape.kv_len,
                     .causal = shape.causal,
                     .seed = request.seed,
                     .params = {}},
                    request.params);
}

void set_weights(const attn::Attention& attention, const std::map<std::string, Array>& given) {
  std::vector<std::string> names;
  for (const attn::Weight& weight : attention.weights()) names.push_back(weight.name);
  for (const auto& [name, array] : given) {
    const auto at = std::find(names.begin(), names.end(), name);
    ATTN_CHECK(at != names.end(), "weights: no weight is named '{}'; {}", name,
               names.empty() ? std::string("this variant has none")
                             : fmt::format("nearest is '{}'", attn::nearest(name, names)));
    const attn::Weight weight = attention.weights()[static_cast<size_t>(at - names.begin())];
    const attn::Shape shape = shape_of(array.shape);
    ATTN_CHECK(shape == weight.value.shape(), "weights: '{}' is {}, expected {}", name, shape.str(),
               weight.value.shape().str());
    weight.value.set_value(tensor_over(array));
  }
}

#ifndef ATTN_DOUBLE
attn::BFloat16Tensor bfloat16_tensor_over(const Array& array) {
  return attn::BFloat16Tensor::over(shape_of(array.shape), static_cast<attn::BFloat16*>(array.data),
                                    array.owner);
}
#endif

// An input that the output does not depend on has no gradient: zeros.
Array gradient_of(const attn::Var& var) {
  return array_over(var.grad().defined() ? var.grad() : attn::Tensor::zeros(var.shape()));
}

class OnePass final : public Pass {
 public:
  explicit OnePass(const PassRequest& request)
      : threads_(request.threads),
        attention_(build(request)),
        q_(tensor_over(request.q), request.gradients),
        k_(tensor_over(request.k), request.gradients),
        v_(tensor_over(request.v), request.gradients) {
    set_weights(*attention_, request.weights);
    for (const attn::Weight& weight : attention_->weights())
      if (weight.learned && request.weights.count(weight.name)) given_.push_back(weight);
    const attn::ScopedThreads scoped(threads_);
    std::optional<attn::NoGrad> no_grad;
    if (!request.gradients) no_grad.emplace();
    output_ = attention_->forward(q_, k_, v_,
                                  {.causal = request.causal, .kv_lengths = request.kv_lengths});
  }

  Array output() const override { return array_over(output_.value()); }

  PassGradients backward(const Array& grad_output) override {
    return translated([&] {
      const attn::Tensor seed = tensor_over(grad_output);
      ATTN_CHECK(seed.shape() == output_.shape(), "the gradient of the output is {}, the output {}",
                 seed.shape().str(), output_.shape().str());
      const attn::ScopedThreads scoped(threads_);
      // `seed` is held here, so that no op takes the memory of the caller for its own.
      if (output_.requires_grad()) output_.backward(seed);
      PassGradients result{gradient_of(q_), gradient_of(k_), gradient_of(v_), {}};
      for (const attn::Weight& weight : given_)
        result.weights[weight.name] = gradient_of(weight.value);
      return result;
    });
  }

 private:
  const int threads_;
  const std::unique_ptr<attn::Attention> attention_;
  const attn::Var q_, k_, v_;
  std::vector<attn::Weight> given_;  // learned
  attn::Var output_;
};

std::unique_ptr<Pass> pass(const PassRequest& request) {
  return translated([&]() -> std::unique_ptr<Pass> { return std::make_unique<OnePass>(request); });
}

}  // namespace
}  // namespace ATTN_PRECISION

#ifdef ATTN_DOUBLE
std::unique_ptr<Pass> pass_in_double(const PassRequest& request) {
  return in_double::pass(request);
}
#else
std::unique_ptr<Pass> pass_in_float(const PassRequest& request) { return in_float::pass(request); }

namespace {

class BFloat16Pass final : public Pass {
 public:
  explicit BFloat16Pass(const PassRequest& request) {
    const auto attention = in_float::build(request, attn::Dtype::bfloat16);
    in_float::set_weights(*attention, request.weights);
    const attn::ScopedThreads scoped(request.threads);
    output_ = attention->forward(in_float::bfloat16_tensor_over(request.q),
                                 in_float::bfloat16_tensor_over(request.k),
                                 in_float::bfloat16_tensor_over(request.v),
                                 {.causal = request.causal, .kv_lengths = request.kv_lengths});
  }

  Array output() const override {
    return {in_float::dims_of(output_.shape()), output_.data(),
            std::make_shared<const attn::BFloat16Tensor>(output_)};
  }

  PassGradients backward(const Array&) override { throw Refused("bfloat16 has no backward pass"); }

 private:
  attn::BFloat16Tensor output_;
};

}  // namespace

std::unique_ptr<Pass> pass_in_bfloat16(const PassRequest& request) {
  return in_float::translated(
      [&]() -> std::unique_ptr<Pass> { return std::make_unique<BFloat16Pass>(request); });
}

std::vector<NamedArray> initial_weights(const std::string& variant, const ParamValues& params,
                                        int64_t heads, int64_t head_dim, int64_t max_len,
                                        bool causal, uint64_t seed) {
  return in_float::translated([&] {
    const auto attention = attn::find_variant(variant).build({.heads = heads,
                                                              .head_dim = head_dim,
                                                              .max_len = max_len,
                                                              .causal = causal,
                                                              .seed = seed,
                                                              .params = {}},
                                                             params);
    std::vector<NamedArray> result;
    for (const attn::Weight& weight : attention->weights())
      result.push_back({weight.name, in_float::array_over(weight.value.value()), weight.learned});
    return result;
  });
}
#endif

}  // namespace attn_python
