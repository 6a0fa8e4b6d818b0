// A mixer whose state is written with other keys than those that it is given, as RWKV-7's are (Peng
// et al. 2025, arXiv:2503.14456). A class that has such keys also derives from WritesKeys, and
// VariantInfo::written_keys says them in double. A block's bonus reads them.
#pragma once

#include <span>

#include "variants/api/attention.h"

namespace attn {

class WritesKeys {
 public:
  virtual ~WritesKeys() = default;
  // k [batch, heads, len, head_dim] and the gates of the same positions, as forward() gets them ->
  // the same shape as k. Of padding anything.
  virtual Var written_keys(const Var& k, std::span<const Var> gates) const = 0;
};

// The attention where it has such keys; null: it writes the keys that it is given.
inline const WritesKeys* as_writing_keys(const Attention& attention) {
  return dynamic_cast<const WritesKeys*>(&attention);
}

}  // namespace attn
