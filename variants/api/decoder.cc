// The checks before a step of decoding; see decoder.h.
#include "variants/api/decoder.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "core/base/check.h"
#include "variants/api/forgetting.h"

namespace attn {

template <class Array>
void Decoder::check_extension(const Array& k, const Array& v, const Array& q) const {
  ATTN_CHECK(
      k.shape().rank() == 4 && k.shape() == position_.with(2, k.dim(2)) && v.shape() == k.shape(),
      "a decoder of positions {} was given k {} and v {}", position_.with(2, 1).str(),
      k.shape().str(), v.shape().str());
  ATTN_CHECK(k.dim(2) <= capacity_ - length_, "{} positions after {} exceed the capacity of {}",
             k.dim(2), length_, capacity_);
  const Shape asked{position_[0], position_[1] * position_[2], k.dim(2), position_[3]};
  ATTN_CHECK(k.dim(2) == 0 || !keys_are_queries() || (q.defined() && q.shape() == asked),
             "queries serve as keys: {} positions need theirs, {}", k.dim(2), asked.str());
}

namespace {

// The queries of a prompt, where they decide what a decoder keeps.
template <class Array>
void hand_over_queries(Decoder& decoder, const Shape& asked, const Array& q) {
  if (!weighs_prompts(decoder)) return;
  ATTN_CHECK(q.defined() && q.shape() == asked,
             "queries decide what is kept: {} positions need theirs, {}", asked[2], asked.str());
  auto& weighing = dynamic_cast<WeighsPrompts&>(decoder);
  if constexpr (std::is_same_v<Array, Tensor>)
    weighing.take_queries(q);
  else
    weighing.take_queries(widened(q));
}

}  // namespace

void Decoder::check_gates(std::span<const Tensor> gates, int64_t len) const {
  ATTN_CHECK(gates.size() == gate_widths_.size(), "a decoder of {} gates was given {}",
             gate_widths_.size(), gates.size());
  for (size_t i = 0; i < gates.size(); i++) {
    const Shape wanted{position_[0], position_[1] * position_[2], len, gate_widths_[i]};
    ATTN_CHECK(gates[i].defined() && gates[i].shape() == wanted,
               "gate {} of a decoder is {}; expected {}", i, gates[i].shape().str(), wanted.str());
  }
}

void Decoder::extend(const Tensor& k, const Tensor& v, const Tensor& q,
                     std::span<const Tensor> gates) {
  check_extension(k, v, q);
  check_gates(gates, k.dim(2));
  if (k.dim(2) == 0) return;
  gates_ = gates;
  hand_over_queries(*this, k.shape().with(1, position_[1] * group()), q);
  do_extend(keys_are_queries() ? q : k, v);
  length_ += k.dim(2);
}

void Decoder::extend(const BFloat16Tensor& k, const BFloat16Tensor& v, const BFloat16Tensor& q,
                     std::span<const Tensor> gates) {
  check_extension(k, v, q);
  check_gates(gates, k.dim(2));
  if (k.dim(2) == 0) return;
  gates_ = gates;
  hand_over_queries(*this, k.shape().with(1, position_[1] * group()), q);
  do_bfloat16_extend(keys_are_queries() ? q : k, v);
  length_ += k.dim(2);
}

template <class Array>
void Decoder::check_step(const Array& q, const Array& k, const Array& v, const Array& out) const {
  const Shape key = position_.with(2, 1), query = key.with(1, position_[1] * group());
  for (const auto& [given, shape] : {std::pair(&q, query), {&k, key}, {&v, key}, {&out, query}})
    ATTN_CHECK(given->shape() == shape, "a decoder of positions {} was given {}", shape.str(),
               given->shape().str());
  ATTN_CHECK(length_ < capacity_, "one position after {} exceeds the capacity of {}", length_,
             capacity_);
}

void Decoder::step(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                   std::span<const Tensor> gates) {
  check_step(q, k, v, out);
  check_gates(gates, 1);
  gates_ = gates;
  do_step(q.data(), k.data(), v.data(), out.data());
  length_++;
}

void Decoder::step(const BFloat16Tensor& q, const BFloat16Tensor& k, const BFloat16Tensor& v,
                   const BFloat16Tensor& out, std::span<const Tensor> gates) {
  check_step(q, k, v, out);
  check_gates(gates, 1);
  gates_ = gates;
  do_bfloat16_step(q.data(), k.data(), v.data(), out.data());
  length_++;
}

void Decoder::do_bfloat16_extend(const BFloat16Tensor& k, const BFloat16Tensor& v) {
  do_extend(widened(k), widened(v));
}

void Decoder::do_bfloat16_step(const BFloat16* q, const BFloat16* k, const BFloat16* v,
                               BFloat16* out) {
  const int64_t key = heads() * head_dim(), query = key * group();
  const MemoryScope scope(Purpose::workspace);
  const Tensor work({2 * query + 2 * key});
  real *const queries = work.data(), *const answer = queries + query, *const keys = answer + query,
              *const values = keys + key;
  std::transform(q, q + query, queries, to_float);
  std::transform(k, k + key, keys, to_float);
  std::transform(v, v + key, values, to_float);
  do_step(queries, keys, values, answer);
  std::transform(answer, answer + query, out,
                 [](real x) { return to_bfloat16(static_cast<float>(x)); });
}

void Decoder::step_back() {
  ATTN_CHECK(length_ > 0, "no step to take back");
  length_--;
}

}  // namespace attn
