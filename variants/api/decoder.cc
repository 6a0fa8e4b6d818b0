// The checks before a step of decoding; see decoder.h.
#include "variants/api/decoder.h"

#include <utility>

#include "core/base/check.h"

namespace attn {

void Decoder::extend(const Tensor& k, const Tensor& v, const Tensor& q) {
  ATTN_CHECK(
      k.shape().rank() == 4 && k.shape() == position_.with(2, k.dim(2)) && v.shape() == k.shape(),
      "a decoder of positions {} was given k {} and v {}", position_.with(2, 1).str(),
      k.shape().str(), v.shape().str());
  ATTN_CHECK(k.dim(2) <= capacity_ - length_, "{} positions after {} exceed the capacity of {}",
             k.dim(2), length_, capacity_);
  if (k.dim(2) == 0) return;
  const Shape asked{position_[0], position_[1] * position_[2], k.dim(2), position_[3]};
  ATTN_CHECK(!keys_are_queries() || (q.defined() && q.shape() == asked),
             "queries serve as keys: {} positions need theirs, {}", k.dim(2), asked.str());
  do_extend(keys_are_queries() ? q : k, v);
  length_ += k.dim(2);
}

void Decoder::step(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out) {
  const Shape key = position_.with(2, 1), query = key.with(1, position_[1] * group());
  for (const auto& [given, shape] : {std::pair(&q, query), {&k, key}, {&v, key}, {&out, query}})
    ATTN_CHECK(given->shape() == shape, "a decoder of positions {} was given {}", shape.str(),
               given->shape().str());
  ATTN_CHECK(length_ < capacity_, "one position after {} exceeds the capacity of {}", length_,
             capacity_);
  do_step(q.data(), k.data(), v.data(), out.data());
  length_++;
}

void Decoder::step_back() {
  ATTN_CHECK(length_ > 0, "no step to take back");
  length_--;
}

}  // namespace attn
