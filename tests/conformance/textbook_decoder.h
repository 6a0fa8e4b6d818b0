// Decoding as in a textbook, right and with one fault at a time: what the check `decode` must
// catch.
#pragma once

#include <memory>

#include "variants/api/decoder.h"

namespace attn {

enum class DecoderFault {
  none,
  short_ring,           // one slot too few: the last position takes that of the first
  not_rescaled,         // a new highest logit leaves the sums of the earlier ones as they are
  prefill_lost,         // of the positions appended at once, the last is left out
  tiled_keys,           // where query heads share keys, head h uses those of head h % kv_heads
  hidden_state,         // holds a few numbers more than it declares
  grows,                // keeps something of every step
  never_back,           // counts its positions itself: a step that is taken back stays
  uncounted_flops,      // declares half of its FLOPs
  uncounted_bytes,      // declares half of its bytes
  second_extend_first,  // a second prefill is written over the first
  shared_state,         // all decoders use one cache
  changes_its_input,    // scales the query where it stands
  extend_after_a_step   // appends after a step what was prefilled before it
};
std::unique_ptr<Decoder> textbook_decoder(const Shape& position, int64_t capacity,
                                          DecoderFault fault);

}  // namespace attn
