// The checks that every variant gets for free, before its do_forward and around its construction.
#include "variants/attention.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "variants/kernels/repeating_decoder.h"
#include "variants/mixer.h"

namespace attn {
namespace {

void check_shapes(const AttentionConfig& config, const Var& q, const Var& k, const Var& v) {
  ATTN_CHECK(q.defined() && k.defined() && v.defined(), "attention needs q, k and v");
  ATTN_CHECK(q.shape().rank() == 4 && k.shape().rank() == 4 && v.shape().rank() == 4,
             "q, k and v must be [batch, heads, len, head_dim]; got {}, {} and {}", q.shape().str(),
             k.shape().str(), v.shape().str());
  ATTN_CHECK(k.shape() == v.shape(), "k is {} but v is {}", k.shape().str(), v.shape().str());
  ATTN_CHECK(k.shape() == q.shape().with(2, k.dim(2)),
             "q is {} but k and v are {}: only the length may differ", q.shape().str(),
             k.shape().str());
  ATTN_CHECK(q.dim(1) == config.heads && q.dim(3) == config.head_dim,
             "q is {}, but the variant was built for {} heads of {}", q.shape().str(), config.heads,
             config.head_dim);
}

void check_lengths(const std::vector<int64_t>& lengths, int64_t batch, int64_t kv_len) {
  ATTN_CHECK(lengths.empty() || static_cast<int64_t>(lengths.size()) == batch,
             "{} kv_lengths for a batch of {}", lengths.size(), batch);
  for (const int64_t length : lengths)
    ATTN_CHECK(length >= 0 && length <= kv_len, "a kv_length of {} is outside [0, {}]", length,
               kv_len);
}

void check_edges(const Edges& edges, int64_t queries, int64_t kv_len) {
  ATTN_CHECK(std::ssize(edges.first) == queries + 1 && edges.first.front() == 0 &&
                 edges.first.back() == std::ssize(edges.keys),
             "edges of {} queries for {}", std::ssize(edges.first) - 1, queries);
  for (size_t r = 0; r + 1 < edges.first.size(); r++) {
    ATTN_CHECK(edges.first[r] <= edges.first[r + 1] && edges.first[r + 1] <= std::ssize(edges.keys),
               "edges of query {} are [{}, {}) of {}", r, edges.first[r], edges.first[r + 1],
               edges.keys.size());
    for (int64_t e = edges.first[r]; e < edges.first[r + 1]; e++) {
      const int32_t key = edges.keys[static_cast<size_t>(e)];
      const bool ascends = e == edges.first[r] || edges.keys[static_cast<size_t>(e - 1)] < key;
      ATTN_CHECK(key >= 0 && key < kv_len && ascends,
                 "edge to key {} of query {}: keys must ascend within [0, {})", key, r, kv_len);
    }
  }
}

}  // namespace

void Attention::check_mask(const Mask& mask, int64_t batch, int64_t q_len, int64_t kv_len) const {
  check_lengths(mask.kv_lengths, batch, kv_len);
  ATTN_CHECK(mask.causal == config_.causal,
             "the variant was built {}causal, the mask says otherwise",
             config_.causal ? "" : "not ");
  ATTN_CHECK(traits_.cross || q_len == kv_len,
             "q_len {} differs from kv_len {}: no cross-attention", q_len, kv_len);
  ATTN_CHECK(traits_.edges || !mask.edges, "the variant takes no edges");
  if (mask.edges) check_edges(*mask.edges, batch * q_len, kv_len);
  ATTN_CHECK(traits_.padding || mask.kv_lengths.empty(), "the variant takes no kv_lengths");
}

Var Attention::forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const {
  check_shapes(config_, q, k, v);
  check_mask(mask, q.dim(0), q.dim(2), k.dim(2));
  Var out = do_forward(q, k, v, mask);
  ATTN_CHECK(out.shape() == q.shape(), "a variant returned {} for q {}", out.shape().str(),
             q.shape().str());
  return out;
}

int64_t Attention::checked_kv_heads(int64_t given) const {
  if (given == 0) return config_.heads;
  ATTN_CHECK(given >= 1 && config_.heads % given == 0, "heads {} are not a multiple of kv_heads {}",
             config_.heads, given);
  return given;
}

// Null where query heads do not share a state.
std::unique_ptr<Decoder> Attention::shared_decoder(const Shape& position, int64_t capacity) const {
  return position[2] > 1 && traits_.mixer ? nullptr : do_decoder(position, capacity);
}

std::unique_ptr<Decoder> Attention::decoder(int64_t batch, int64_t capacity,
                                            int64_t kv_heads) const {
  ATTN_CHECK(traits_.decode, "the variant cannot decode");
  ATTN_CHECK(config_.causal, "decoding is causal, the variant was built not causal");
  ATTN_CHECK(batch >= 1 && capacity >= 1,
             "decoding needs batch and capacity of at least 1, got {} and {}", batch, capacity);
  const int64_t heads = config_.heads, kept = checked_kv_heads(kv_heads);
  const Shape position{batch, kept, heads / kept, config_.head_dim};
  std::unique_ptr<Decoder> made = shared_decoder(position, capacity);
  if (!made && kept < heads) {
    made = do_decoder({batch, heads, 1, config_.head_dim}, capacity);
    if (made) made = repeating_decoder(position, std::move(made));
  }
  ATTN_CHECK(made, "the variant promises to decode and made no decoder");
  return made;
}

double Attention::state_bytes(const AttentionShape& shape, int64_t kv_heads) const {
  const int64_t kept = checked_kv_heads(kv_heads), group = config_.heads / kept;
  const std::optional<Cost> declared = declared_cost(shape);
  if (!declared)
    return static_cast<double>(decoder(shape.batch, shape.kv_len, kept)->state_bytes());
  const bool shared = group > 1 && shared_decoder({1, kept, group, config_.head_dim}, 1);
  return declared->state_bytes / static_cast<double>(shared ? group : 1);
}

std::unique_ptr<Decoder> Attention::do_decoder(const Shape&, int64_t) const { return nullptr; }

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

Var Attention::weight(std::string name, const Tensor& start, bool learned) {
  weights_.push_back({std::move(name), Var(start, learned), learned});
  return weights_.back().value;
}

Var Attention::normal_weight(const std::string& name, const Shape& shape, double deviation) {
  return weight(name, Tensor::normal(shape, rng(config_.seed, name), deviation));
}

Var Attention::glorot_weight(const std::string& name, const Shape& shape) {
  return normal_weight(name, shape, std::sqrt(2.0 / static_cast<double>(shape[-2] + shape[-1])));
}

Cost Attention::do_cost(const AttentionShape&) const { return {.declared = false}; }

std::optional<Cost> Attention::declared_cost(const AttentionShape& shape) const {
  Cost cost = do_cost(shape);
  if (!cost.declared) return std::nullopt;
  if (cost.backward_flops == 0) cost.backward_flops = 2 * cost.flops;
  return cost;
}

Cost Attention::cost(const AttentionShape& shape) const {
  const std::optional<Cost> declared = declared_cost(shape);
  ATTN_CHECK(declared, "the variant declares no cost");
  return *declared;
}

std::map<std::string, ParamValue> VariantInfo::at_limit(std::map<std::string, ParamValue> given,
                                                        const Limit& of) const {
  for (const auto& [param, value] : of.params) given[param] = value;
  return effective(params, std::move(given));
}

std::optional<std::string> VariantInfo::why_not(const AttentionShape& shape,
                                                const Params& chosen) const {
  if (shape.causal && !traits.causal) return "cannot be causal";
  if (shape.q_len != shape.kv_len && !traits.cross) return "has no cross-attention";
  return skip_reason ? skip_reason(shape, chosen) : std::nullopt;
}

std::optional<std::string> VariantInfo::why_no_decoder(const AttentionShape& shape,
                                                       const Params& chosen) const {
  if (!traits.decode) return traits.causal ? "cannot decode" : "cannot decode: it cannot be causal";
  if (no_decoder)
    if (auto reason = no_decoder(chosen)) return reason;
  return why_not(shape, chosen);
}

std::unique_ptr<Attention> VariantInfo::build(
    AttentionConfig config, const std::map<std::string, ParamValue>& given) const {
  ATTN_CHECK(config.heads >= 1 && config.head_dim >= 1 && config.max_len >= 1,
             "{}: heads {}, head_dim {} and max_len {} must be at least 1", name, config.heads,
             config.head_dim, config.max_len);
  ATTN_CHECK(!config.causal || traits.causal, "{} cannot be causal", name);
  config.params = Params(name, params, given);
  std::unique_ptr<Attention> attention = make(config);
  attention->traits_ = traits;
  ATTN_CHECK(traits.mixer == (as_mixer(*attention) != nullptr),
             "{} is {}a Mixer, its trait says {}", name, traits.mixer ? "not " : "", traits.mixer);
  return attention;
}

std::function<std::optional<VariantInfo::Limit>(const AttentionShape&)> limit_at_length(
    const std::string& reach, const std::map<std::string, ParamValue>& others) {
  return [=](const AttentionShape& shape) {
    VariantInfo::Limit limit{.params = others, .prepare = {}};
    limit.params[reach] = std::max(shape.q_len, shape.kv_len);
    return limit;
  };
}

const std::vector<std::string>& families() {
  static const std::vector<std::string> list = {
      "exact",     "other scores", "pattern",     "low rank", "kernel", "hashing or routing",
      "synthetic", "recurrent",    "convolution", "control"};
  return list;
}

}  // namespace attn
