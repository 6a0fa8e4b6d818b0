// What a variant can do and promises.
#pragma once

namespace attn {

// What a variant can do and promises; the harness branches on these, never on a name. Each promise
// is checked.
struct Traits {
  bool exact = false;         // equals softmax attention for every input
  bool causal = false;        // can hide the future
  bool cross = false;         // q_len may differ from kv_len
  bool padding = true;        // honours kv_lengths
  bool linear_time = false;   // FLOPs grow linearly with the length
  bool linear_memory = true;  // peak bytes grow linearly with the length
  bool random = false;        // holds random features
  bool fixed_length = false;  // built for a longest length
  bool convex = false;  // each output is a convex combination of the visible values (rows sum to
                        // one, no sign)
  bool permutable = false;  // permuting positions permutes the output
  bool decode = false;      // answers one position after the other from a state
  bool edges = false;       // honours Mask::edges
  // Cross-attention answers each query by itself, wherever it stands: what a decoder needs that
  // asks for one output after the other.
  bool rowwise = false;
  // Ignores queries and keys: the layer gives it its input itself, see mixer.h.
  bool mixer = false;
};

}  // namespace attn
