// An attention that one thread may call alone.
#pragma once

namespace attn {

// Derived from beside Attention where forward and backward must run on the thread that asks for
// them, such as those of a function of Python, whose interpreter lock that thread holds.
class OnCallingThread {
 public:
  virtual ~OnCallingThread() = default;
};

}  // namespace attn
