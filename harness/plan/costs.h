// What one forward costs, by a variant's own formulas or as counted. A plan asks for the same few
// costs thousands of times, and the answer takes a millisecond: a variant is built for it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core/base/params.h"
#include "variants/api/attention.h"
#include "variants/api/variant_info.h"

namespace attn {

// Remembers every answer, and some of the variants that it built.
class Costs {
 public:
  // Zeros where the variant cannot be built: the cell itself will say what is wrong. state_bytes
  // are with keys and values of kv_heads heads; 0: as many as query heads. Of
  // a stack: the mean of its layers, and the largest peak.
  Cost of(const VariantInfo& info, const Params& params, const AttentionShape& shape,
          int64_t kv_heads = 0);

 private:
  Cost new_cost(const VariantInfo& info, const Params& params, const AttentionShape& shape,
                int64_t kv_heads);
  Cost mean_of_layers(const VariantInfo& stack, const AttentionShape& shape, int64_t kv_heads);
  const Attention& built_for(const VariantInfo& info, const Params& params,
                             const AttentionShape& shape, int64_t max_len);
  Cost counted(const VariantInfo& info, const Params& params, const AttentionShape& shape,
               int64_t kv_heads);

  std::map<std::string, Cost> known_, counted_;
  std::map<std::string, std::unique_ptr<Attention>> built_;
  int64_t built_bytes_ = 0;
};

}  // namespace attn
