// An attention that keeps something for the length of the last forward, such as a pattern, and is
// told which sequences come.
#pragma once

namespace attn {

class Packing;

// A variant derives from this class beside Attention.
class ExpectsSequences {
 public:
  virtual ~ExpectsSequences() = default;
  // The sequences of `packing` are answered next, each by itself, and again and again: what is kept
  // for one length is now kept for each of theirs, and for one more. Changes no answer.
  void expect(const Packing& packing) const { do_expect(packing); }

 private:
  virtual void do_expect(const Packing& packing) const = 0;
};

}  // namespace attn
