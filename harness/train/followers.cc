// See followers.h. Memory: queries and keys of a step, which its tape holds too.
#include "harness/train/followers.h"

#include "variants/api/following.h"

namespace attn {

AttentionWatch Followers::watch() {
  return [this](const AttentionPass& pass) {
    if (listens_ && as_following(*pass.attention))
      heard_.push_back({pass.attention, pass.q, pass.k, pass.mask});
  };
}

void Followers::listen(bool on) {
  listens_ = on;
  if (on) heard_.clear();
}

void Followers::follow() {
  for (const Heard& pass : heard_) as_following(*pass.attention)->follow(pass.q, pass.k, pass.mask);
  heard_.clear();
}

}  // namespace attn
