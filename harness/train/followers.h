// Weights that follow what a training sees, without a gradient: see variants/api/following.h. A
// training listens to the passes of a step, and lets them move after it. Costs nothing where no
// attention follows.
#pragma once

#include <vector>

#include "harness/train/learner.h"

namespace attn {

class Followers {
 public:
  Followers() = default;
  Followers(const Followers&) = delete;  // its watch refers to it
  Followers& operator=(const Followers&) = delete;
  // For LearnerSpec::watch of the model that is trained, which must not outlive this object.
  AttentionWatch watch();
  // Whether passes from here on are those of a step; forgets what was heard before.
  void listen(bool on);
  // Moves the weights by the passes that were heard, in their order.
  void follow();

 private:
  struct Heard {
    const Attention* attention;
    Tensor q, k;  // [batch, heads, len, head_dim]
    Mask mask;
  };

  bool listens_ = false;
  std::vector<Heard> heard_;
};

}  // namespace attn
