// Whether operations are recorded for a backward pass: a flag of the thread, which parallel_for
// hands on to its workers.
#pragma once

namespace attn {

// While one lives on a thread, nothing is recorded there.
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
