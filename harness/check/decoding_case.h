// What decoders of one variant are checked with; private to the check `decode`.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "core/ops/ops_heads.h"
#include "harness/check/forgetting.h"
#include "harness/check/subject.h"
#include "variants/api/answer.h"

namespace attn {

inline constexpr double kDecodingGap = kIsDouble ? 1e-10 : 1e-5;

struct DecodingCase {
  const Attention& attention;
  AttentionShape shape;
  int64_t kv_heads;  // of keys and values
  double allowed = kDecodingGap;

  std::unique_ptr<Decoder> decoder() const {
    return attention.decoder(shape.batch, shape.kv_len, kv_heads);
  }
  const Forgetting* forgets() const { return as_forgetting(attention); }
  ForgettingCase forgetting() const { return {*forgets(), attention, shape, kv_heads}; }
  DecodeSteps steps_after(int64_t prefill, int64_t length) const {
    return DecodeSteps::after(prefill, length, kv_heads);
  }
  // `steps`: those of the positions that are.
  Inputs inputs(uint64_t seed, const DecodeSteps& steps, double scale = 1) const {
    if (forgets()) return forgetting().inputs(seed, scale, steps);
    const Inputs x = make_inputs(attention, shape, seed, scale);
    return {x.q, part(x.k, 1, 0, kv_heads), part(x.v, 1, 0, kv_heads), x.gates};
  }
  Tensor output(const Inputs& x, const DecodeSteps& steps) const {
    return forgets() ? forgetting().output(x, steps) : output(x, shape);
  }
  // Of forward, on keys and values as they are or repeated.
  Tensor output(const Inputs& x, const AttentionShape& of) const {
    const NoGrad no_grad;
    const int64_t times = shape.heads / kv_heads;
    return output_of(attention,
                     {x.q, repeat_heads(Var(x.k), times).value(),
                      repeat_heads(Var(x.v), times).value(), x.gates},
                     mask_of(of));
  }
  std::string name() const {
    const std::string heads = fmt::format(", {} heads of keys for {}", kv_heads, shape.heads);
    return text(shape) + (kv_heads < shape.heads ? heads : "");
  }
};

// Appends positions [begin, end) and returns their rows.
inline Tensor answered(Decoder& decoder, const Inputs& x, int64_t begin, int64_t end) {
  const Inputs some = part(x, 2, begin, end);
  const Tensor out(some.q.shape());
  answer(decoder, some.q, some.k, some.v, out, some.gates);
  return out;
}

// splits.cc: however a sequence is cut into parts, each appended at once or answered, its rows are
// those of one pass. Every cut, and every two cuts, of a short sequence. O(length²) decoders.
void compare_splits(const DecodingCase& c, Verdict& verdict);
// Cuts in two of a longer one, at the edges of tiles and chunks, or, if `every`, at all positions.
void compare_long_splits(const DecodingCase& c, bool every, Verdict& verdict);

}  // namespace attn
