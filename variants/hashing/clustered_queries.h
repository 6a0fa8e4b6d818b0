// The attention of clustered and improved_clustered, and their reference. Vyas et al. 2020,
// arXiv:2007.04825, eqs. 3-9.
#pragma once

#include <string>

#include "variants/api/attention.h"
#include "variants/api/reference.h"
#include "variants/hashing/clustered_attention.h"

namespace attn {

class ClusteredQueries final : public Attention {
 public:
  // Planes are drawn from the random stream of that name. keys: of a cluster, weighted again by
  // each member; 0: none.
  ClusteredQueries(const AttentionConfig& config, const std::string& stream, int64_t keys);

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override;
  Cost do_cost(const AttentionShape& shape) const override;

  ClusterOptions options_;
  Var planes_;  // [heads, bits, head_dim + 1], the offset last
};

oracle::Array clustered_reference(const ReferenceInputs& x, int64_t keys);
// What `info` says of both.
std::string cluster_note();

}  // namespace attn
