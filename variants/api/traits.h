// What a variant can do and promises.
#pragma once

namespace attn {

// The harness branches on traits, never on a name. A contract check tests each trait.
struct Traits {
  bool exact = false;         // equals softmax attention for every input
  bool causal = false;        // can hide the future
  bool cross = false;         // q_len may differ from kv_len
  bool padding = true;        // honours kv_lengths
  bool linear_time = false;   // FLOPs grow linearly with the length
  bool linear_memory = true;  // peak bytes grow linearly with the length
  bool random = false;        // holds random features
  bool fixed_length = false;  // built for a longest length
  bool convex = false;  // each output is a convex combination of the visible values: weights are
                        // not negative and sum to one
  bool permutable = false;   // permuting positions permutes the output
  bool decode = false;       // answers one position after the other from a state
  bool typed_cache = false;  // and caches keys and values, in any CacheType
  bool edges = false;        // honours Mask::edges
  // In cross-attention the output of a query depends on that query alone, not on its position or on
  // other queries. A decoder that generates one output at a time needs this.
  bool rowwise = false;
  // Reads queries, keys and values in bfloat16 itself. The inputs of others are widened to float32
  // first.
  bool bfloat16 = false;
  // Ignores queries and keys and reads the layer's input instead, see mixer.h.
  bool mixer = false;
  // Outputs are no linear function of the values, gates and all else being the same.
  bool nonlinear = false;
  bool gated = false;  // reads gates beside queries, keys and values, see gates.h
  // Gradients of queries and keys are not derivatives of the forward, which are 0 almost everywhere
  // where it hashes, but of what VariantInfo::surrogate declares.
  bool surrogate_gradients = false;
  bool distance_bias = false;  // its logits take a bias of each distance, see distance_bias.h
  bool mimicry = false;  // has a loss that fits its weights to those of softmax, see mimicry.h
};

}  // namespace attn
