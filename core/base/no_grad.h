// Switches off the recording of operations for the backward pass. The flag belongs to a thread;
// parallel_for sets the same flag in its workers.
#pragma once

namespace attn {

// While an object of this class exists, its thread records no operations.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;
  static bool active();

 private:
  bool before_;
};

}  // namespace attn
