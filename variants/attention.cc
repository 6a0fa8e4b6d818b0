// The checks that every variant gets for free, before its do_forward and around its construction.
#include "variants/attention.h"

#include "core/check.h"

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

}  // namespace

Var Attention::forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const {
  check_shapes(config_, q, k, v);
  check_lengths(mask.kv_lengths, q.dim(0), k.dim(2));
  ATTN_CHECK(mask.causal == config_.causal,
             "the variant was built {}causal, the mask says otherwise",
             config_.causal ? "" : "not ");
  ATTN_CHECK(traits_.cross || q.dim(2) == k.dim(2),
             "q_len {} differs from kv_len {}: no cross-attention", q.dim(2), k.dim(2));
  ATTN_CHECK(traits_.padding || mask.kv_lengths.empty(), "the variant takes no kv_lengths");
  Var out = do_forward(q, k, v, mask);
  ATTN_CHECK(out.shape() == q.shape(), "a variant returned {} for q {}", out.shape().str(),
             q.shape().str());
  return out;
}

Cost Attention::cost(const AttentionShape& shape) const {
  Cost cost = do_cost(shape);
  if (cost.backward_flops == 0) cost.backward_flops = 2 * cost.flops;
  return cost;
}

std::optional<std::string> VariantInfo::why_not(const AttentionShape& shape,
                                                const Params& chosen) const {
  if (shape.causal && !traits.causal) return "cannot be causal";
  if (shape.q_len != shape.kv_len && !traits.cross)
    return "has no cross-attention";
  return skip_reason ? skip_reason(shape, chosen) : std::nullopt;
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
  return attention;
}

}  // namespace attn
