// A list of keys and values, and one online softmax over it; see planted.h.
#include "tests/conformance/planted.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "core/base/counters.h"

namespace attn {
namespace {

class TextbookDecoder final : public Decoder {
 public:
  TextbookDecoder(const Shape& position, int64_t capacity, DecoderFault fault)
      : Decoder(position, capacity),
        fault_(fault),
        kept_(position[1]),
        keys_({heads(), capacity, head_dim()}),
        values_({heads(), capacity, head_dim()}) {
    if (fault == DecoderFault::hidden_state) hidden_ = Tensor({heads()});
    if (fault == DecoderFault::shared_state) {
      static auto* const caches = new std::map<int64_t, std::pair<Tensor, Tensor>>;  // by size
      auto& [keys, values] = (*caches)[keys_.size()];
      if (!keys.defined()) keys = keys_, values = values_;
      keys_ = keys, values_ = values;
    }
  }

 private:
  void put(int64_t head, int64_t position, const real* k, const real* v) const {
    const bool ring = fault_ == DecoderFault::short_ring && capacity() > 1;
    const int64_t slot = head * capacity() + position % (ring ? capacity() - 1 : capacity());
    std::copy_n(k, head_dim(), keys_.data() + slot * head_dim());
    std::copy_n(v, head_dim(), values_.data() + slot * head_dim());
  }

  int64_t start(int64_t len) const {
    const bool late =
        fault_ == DecoderFault::extend_after_a_step && stepped_ && length() + len < capacity();
    const bool over = fault_ == DecoderFault::chunk_of_one && len == 1 && length() > 0;
    return fault_ == DecoderFault::second_extend_first || late ? 0 : length() - (over ? 1 : 0);
  }

  void do_extend(const Tensor& k, const Tensor& v) override {
    const int64_t len = k.dim(2);
    const bool at_odd_end =
        fault_ == DecoderFault::odd_chunk_end && length() > 0 && (length() + len) % 8 == 5;
    const int64_t kept = fault_ == DecoderFault::prefill_lost || at_odd_end ? len - 1 : len;
    for (int64_t head = 0; head < heads(); head++)
      for (int64_t i = 0; i < len; i++) {
        const int64_t from =
            (head * len + std::min(i, std::max<int64_t>(0, kept - 1))) * head_dim();
        put(head, start(len) + i, k.data() + from, v.data() + from);
      }
    own_length_ = length() + len;
  }

  void do_step(const real* q, const real* k, const real* v, real* out) override {
    const int64_t dim = head_dim(), count = length() + 1;
    const int64_t position = fault_ == DecoderFault::never_back ? own_length_ : length();
    own_length_ = position + 1;
    stepped_ = true;
    if (fault_ == DecoderFault::grows) grown_.push_back(Tensor({heads()}));
    const double scale = 1 / std::sqrt(static_cast<double>(dim));
    for (int64_t head = 0; head < heads(); head++)
      put(head, position, k + head * dim, v + head * dim);
    for (int64_t row = 0; row < heads() * group(); row++) {
      const int64_t head = key_head(row);
      double top = -INFINITY, mass = 0;
      std::vector<double> sum(static_cast<size_t>(dim));
      for (int64_t j = 0; j < seen(count); j++) {
        const int64_t at = (head * capacity() + j) * dim;
        double logit = 0;
        for (int64_t c = 0; c < dim; c++) logit += scale * q[row * dim + c] * keys_[at + c];
        const double next = std::max(top, logit), weight = std::exp(logit - next);
        const double shrink = fault_ == DecoderFault::not_rescaled ? 1 : std::exp(top - next);
        mass = mass * shrink + weight;
        for (int64_t c = 0; c < dim; c++) {
          double& total = sum[static_cast<size_t>(c)];
          total = total * shrink + weight * static_cast<double>(values_[at + c]);
        }
        top = next;
      }
      for (int64_t c = 0; c < dim; c++)
        out[row * dim + c] = static_cast<real>(sum[static_cast<size_t>(c)] / mass);
    }
    if (fault_ == DecoderFault::changes_its_input)
      for (int64_t i = 0; i < heads() * group() * dim; i++)
        const_cast<real*>(q)[i] *= real(scale);  // deliberate
    count_flops(4 * static_cast<double>(heads() * group() * count * dim));
    count_bytes(bytes_of(count));
  }

  int64_t key_head(int64_t row) const {
    if (fault_ != DecoderFault::tiled_keys) return row / group();
    const int64_t queries = kept_ * group();
    return row / queries * kept_ + row % queries % kept_;
  }
  int64_t seen(int64_t count) const {
    const bool ring = fault_ == DecoderFault::short_ring && capacity() > 1;
    return ring ? std::min(count, capacity() - 1) : count;
  }
  int64_t do_state_bytes() const override {
    const int64_t more = hidden_.defined() ? hidden_.size() : 0;
    return (keys_.size() + values_.size() + more) * static_cast<int64_t>(sizeof(real));
  }
  double do_step_flops() const override {
    const auto flops = 4 * static_cast<double>(heads() * group() * (length() + 1) * head_dim());
    return fault_ == DecoderFault::uncounted_flops ? flops / 2 : flops;
  }
  double bytes_of(int64_t count) const {
    return 2 * static_cast<double>(sizeof(real)) *
           static_cast<double>(heads() * count * head_dim());
  }
  double do_step_bytes() const override {
    return bytes_of(length() + 1) / (fault_ == DecoderFault::uncounted_bytes ? 2 : 1);
  }

  DecoderFault fault_;
  int64_t kept_;  // heads of keys of a batch entry
  int64_t own_length_ = 0;
  bool stepped_ = false;
  Tensor keys_, values_;  // [heads, capacity, head_dim]
  Tensor hidden_;         // [heads]
  std::vector<Tensor> grown_;
};

}  // namespace

std::unique_ptr<Decoder> textbook_decoder(const Shape& position, int64_t capacity,
                                          DecoderFault fault) {
  return std::make_unique<TextbookDecoder>(position, capacity, fault);
}

}  // namespace attn
