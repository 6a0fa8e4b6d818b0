// bare_fault: late_fault without a declared reference, so that only identities can tell.
#include "variants/api/variant_info.h"

namespace attn::variants {

VariantInfo late_fault();

VariantInfo bare_fault() {
  VariantInfo info = late_fault();
  info.name = "bare_fault";
  info.reference = {};
  return info;
}

}  // namespace attn::variants
