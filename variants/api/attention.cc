// The checks that every variant gets for free, before its do_forward and around its construction.
#include "variants/api/attention.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "variants/api/mixer.h"
#include "variants/api/repeating_decoder.h"

namespace attn {
namespace {

template <class Array>
void check_shapes(const AttentionConfig& config, const Array& q, const Array& k, const Array& v) {
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

std::string gate_names(const std::vector<GateInput>& gates) {
  std::string names;
  for (const GateInput& gate : gates) names += (names.empty() ? "" : ", ") + gate.name;
  return gates.empty() ? "none" : names;
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

void Attention::check_gates(std::span<const Var> gates, int64_t batch, int64_t kv_len) const {
  ATTN_CHECK(gates.size() == gates_.size(), "the variant reads {} gates ({}); given are {}",
             gates_.size(), gate_names(gates_), gates.size());
  for (size_t i = 0; i < gates.size(); i++) {
    const Shape wanted{batch, config_.heads, kv_len, gates_[i].width};
    ATTN_CHECK(gates[i].defined() && gates[i].shape() == wanted, "gate {} is {}; expected {}",
               gates_[i].name, gates[i].defined() ? gates[i].shape().str() : "missing",
               wanted.str());
  }
}

Var Attention::checked_forward(const Var& q, const Var& k, const Var& v, const Mask& mask,
                               std::span<const Var> gates) const {
  return gates_.empty() ? do_forward(q, k, v, mask) : do_gated_forward(q, k, v, gates, mask);
}

Var Attention::forward(const Var& q, const Var& k, const Var& v, const Mask& mask,
                       std::span<const Var> gates) const {
  check_shapes(config_, q, k, v);
  check_mask(mask, q.dim(0), q.dim(2), k.dim(2));
  check_gates(gates, k.dim(0), k.dim(2));
  Var out = checked_forward(q, k, v, mask, gates);
  ATTN_CHECK(out.shape() == q.shape(), "a variant returned {} for q {}", out.shape().str(),
             q.shape().str());
  return out;
}

BFloat16Tensor Attention::forward(const BFloat16Tensor& q, const BFloat16Tensor& k,
                                  const BFloat16Tensor& v, const Mask& mask,
                                  std::span<const Var> gates) const {
  check_shapes(config_, q, k, v);
  check_mask(mask, q.dim(0), q.dim(2), k.dim(2));
  check_gates(gates, k.dim(0), k.dim(2));
  const NoGrad no_grad;
  BFloat16Tensor out;
  if (reads_bfloat16_ && !mask.edges) {
    out = do_bfloat16_forward(q, k, v, mask);
  } else {  // the widened arrays are freed before the output is rounded
    const Tensor wide =
        checked_forward(Var(widened(q)), Var(widened(k)), Var(widened(v)), mask, gates).value();
    out = rounded(wide);
  }
  ATTN_CHECK(out.shape() == q.shape(), "a variant returned {} for q {}", out.shape().str(),
             q.shape().str());
  return out;
}

Var Attention::do_gated_forward(const Var&, const Var&, const Var&, std::span<const Var>,
                                const Mask&) const {
  throw_error("the variant declares gates and does not read them (see GatedAttention)");
}

BFloat16Tensor Attention::do_bfloat16_forward(const BFloat16Tensor&, const BFloat16Tensor&,
                                              const BFloat16Tensor&, const Mask&) const {
  throw_error("the variant promises to read bfloat16 and does not");
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

std::unique_ptr<Decoder> Attention::decoder(int64_t batch, int64_t capacity, int64_t kv_heads,
                                            Dtype dtype, CacheType cache) const {
  ATTN_CHECK(traits_.decode, "the variant cannot decode");
  ATTN_CHECK(config_.causal, "decoding is causal, the variant was built not causal");
  ATTN_CHECK(batch >= 1 && capacity >= 1,
             "decoding needs batch and capacity of at least 1, got {} and {}", batch, capacity);
  const int64_t heads = config_.heads, kept = checked_kv_heads(kv_heads);
  const Shape position{batch, kept, heads / kept, config_.head_dim};
  const bool is_typed = cache != CacheType::float32;
  ATTN_CHECK(!is_typed || traits_.typed_cache, "its decoder has no cache of {}", name_of(cache));
  const auto make = [&](const Shape& of) {
    return is_typed ? do_cached_decoder(of, capacity, cache) : shared_decoder(of, capacity);
  };
  std::unique_ptr<Decoder> made =
      dtype == Dtype::bfloat16 && !is_typed ? do_bfloat16_decoder(position, capacity) : nullptr;
  if (!made) made = make(position);
  if (!made && kept < heads) {
    made = make({batch, heads, 1, config_.head_dim});
    if (made) made = repeating_decoder(position, std::move(made));
  }
  ATTN_CHECK(made, "the variant promises to decode and made no decoder");
  return made;
}

double Attention::state_bytes(const AttentionShape& shape, int64_t kv_heads) const {
  const int64_t kept = checked_kv_heads(kv_heads), group = config_.heads / kept;
  const std::optional<Cost> declared = declared_cost(shape);
  if (!declared)
    return static_cast<double>(
        decoder(shape.batch, shape.kv_len, kept, shape.dtype, shape.cache)->state_bytes());
  const Shape position{1, kept, group, config_.head_dim};
  const bool shared = group > 1 && (shape.cache == CacheType::float32
                                        ? shared_decoder(position, 1)
                                        : do_cached_decoder(position, 1, shape.cache));
  const double of_all = declared->sequence_state_bytes;
  return (declared->state_bytes - of_all) / static_cast<double>(shared ? group : 1) + of_all;
}

std::unique_ptr<Decoder> Attention::do_decoder(const Shape&, int64_t) const { return nullptr; }

std::unique_ptr<Decoder> Attention::do_bfloat16_decoder(const Shape&, int64_t) const {
  return nullptr;
}

std::unique_ptr<Decoder> Attention::do_cached_decoder(const Shape&, int64_t, CacheType) const {
  return nullptr;
}

Var Attention::weight(std::string name, const Tensor& start, bool learned) {
  weights_.push_back({std::move(name), Var(start, learned), learned});
  return weights_.back().value;
}

void Attention::adopt_weights(const std::string& prefix, const Attention& inner) {
  for (const Weight& each : inner.weights_)
    weights_.push_back({prefix + each.name, each.value, each.learned, each.moved});
}

Var Attention::moved_weight(std::string name, const Tensor& start) {
  weights_.push_back({std::move(name), Var(start, true), false, true});
  return weights_.back().value;
}

Var Attention::normal_weight(const std::string& name, const Shape& shape, double deviation) {
  return weight(name, Tensor::normal(shape, rng(config_.seed, name), deviation));
}

Var Attention::glorot_weight(const std::string& name, const Shape& shape) {
  return normal_weight(name, shape, std::sqrt(2.0 / static_cast<double>(shape[-2] + shape[-1])));
}

Cost Attention::do_cost(const AttentionShape&) const { return {.declared = false}; }

// The formulas of float32, and the three arrays that widening reads and writes, and the output that
// is read and rounded. Rounding holds less than the widened arrays, which are free by then.
Cost Attention::widened_cost(const AttentionShape& shape) const {
  AttentionShape wide = shape;
  wide.dtype = Dtype::float32;
  Cost cost = do_cost(wide);
  const double inputs = traits_.mixer ? 1 : 3;
  const auto width = static_cast<double>(shape.batch * shape.heads * shape.head_dim);
  const double queries = width * static_cast<double>(shape.q_len),
               keys = width * static_cast<double>(shape.kv_len);
  const double numbers = inputs == 1 ? queries : queries + 2 * keys;
  cost.peak_bytes += numbers * sizeof(real);
  cost.bytes += (numbers + queries) * (sizeof(real) + sizeof(BFloat16));
  return cost;
}

std::optional<Cost> Attention::declared_cost(const AttentionShape& shape) const {
  const bool is_wide = shape.dtype == Dtype::bfloat16 && !reads_bfloat16_;
  Cost cost = is_wide ? widened_cost(shape) : do_cost(shape);
  if (!cost.declared) return std::nullopt;
  if (shape.dtype == Dtype::bfloat16 && !is_wide && !do_bfloat16_decoder({1, 1, 1, 1}, 1)) {
    AttentionShape wide = shape;
    wide.dtype = Dtype::float32;
    cost.state_bytes = do_cost(wide).state_bytes;
  }
  if (cost.backward_flops == 0) cost.backward_flops = 2 * cost.flops;
  return cost;
}

Cost Attention::cost(const AttentionShape& shape) const {
  const std::optional<Cost> declared = declared_cost(shape);
  ATTN_CHECK(declared, "the variant declares no cost");
  return *declared;
}

}  // namespace attn
