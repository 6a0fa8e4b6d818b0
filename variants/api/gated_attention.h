// An attention that reads gates beside queries, keys and values; see gates.h.
#pragma once

#include "core/base/check.h"
#include "variants/api/attention.h"

namespace attn {

// Needs Traits::gated and VariantInfo::gates. The gates are of the keys' positions, and padding
// (j >= kv_lengths[b]) of gates is never read: a padded position writes nothing and decays nothing.
class GatedAttention : public Attention {
 protected:
  using Attention::Attention;

 private:
  Var do_gated_forward(const Var& q, const Var& k, const Var& v, std::span<const Var> gates,
                       const Mask& mask) const override = 0;
  Var do_forward(const Var&, const Var&, const Var&, const Mask&) const final {
    throw_error("the variant reads gates and declares none (VariantInfo::gates)");
  }
};

}  // namespace attn
