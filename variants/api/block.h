// What a paper's layer puts around its mixer, as data: projections, a short convolution, norms, an
// output gate and a skip. Block paper of a layer is built from it by variants/block/block.h;
// block mixer, the default, has the projections of multi-head attention alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace attn {

// What follows the mixer in a layer, after a norm of its own. plain: GELU between two matrices with
// biases. squared: relu(W_k·x')² and W_v without biases, where x' = x + μ ⊙ (x_{t-1} - x) (RWKV-7's
// channel mixing). gated_squared: that times σ(W_r·x'') with a shift of its own (RWKV-6's). none:
// the mixer is the layer.
enum class FeedForward { plain, squared, gated_squared, none };

// Parts in the order in which a row passes them. `rows` are numbers of all heads of one position.
struct LayerBlock {
  // x + μ ⊙ (x_{t-1} - x) with a learned μ of each projection (RWKV's token shift).
  bool token_shift = false;
  // The shift depends on the data: μ + tanh((x + μ' ⊙ (x_{t-1} - x))·A)·B, with A [width, rank] and
  // B [rank, width] of each projection (RWKV-6); 0: on none.
  int64_t shift_rank = 0;
  // Shares start at 1 - (c/width)^power of channel c: powers by the names of projections, q, k, v,
  // gate and gate.NAME of the mixer's; of others 1.
  std::map<std::string, double> shift_powers = {};

  // Heads of the mixer for each head of the layer, which keep the layer's head_dim: the inner width
  // is expansion · width.
  int64_t expansion = 1;
  // Values of a head are so many times as wide as its keys. The mixer must be linear in its values:
  // each part of head_dim columns is a sequence of its own with the same queries, keys and gates.
  int64_t value_parts = 1;
  bool one_key_head = false;    // queries and keys of one head serve all heads
  bool projects_values = true;  // false: the mixer reads the rows as they come
  bool projects_output = true;  // false: what the mixer answers is the output
  // The mixer's parameter that says how many numbers queries and keys of a head are projected to at
  // once; zeros follow up to head_dim, and the mixer makes no projections of them itself
  // (AttentionConfig::key_dim). "": head_dim.
  std::string key_dim = {};

  // Causal depthwise convolution of `kernel` taps over projected rows; 0: none.
  struct Convolution {
    int64_t kernel = 0;
    bool queries = true, keys = true, values = true;
    std::vector<std::string> gates = {};  // names of gates that pass one too
    bool bias = false;
  } convolution = {};
  // silu() of queries, keys and values, after the convolution where they pass one.
  bool silu_queries = false, silu_keys = false, silu_values = false;
  // Keys and values are mixed with those of the position before, in a share that a gate of each
  // head decides (Forgetting Transformer, section 3.3).
  bool key_value_shift = false;
  // Later layers mix their values with those of the first, which hands them on (RWKV-7): v + (v_1 -
  // v) ⊙ σ(bias + (x_v·A)·B), where x_v is what v is projected from; A [width, rank] and B [rank,
  // inner width], of rank max(32, 1.7·√width), rounded to a multiple of 32. The bias starts at 0.93
  // of the first channel and falls to 0.53 of the last.
  bool value_residual = false;
  bool query_key_norm = false;  // RMS norm of each head's queries and keys, with a gain of its own
  bool projection_biases = false;  // of queries, keys, values and output, from 0 on

  // Names of gates: that one head makes for all (Mamba's B and C); whose projection of two steps
  // has tanh between them; and that have a learned bias from 0 on, beside those that the mixer
  // declares.
  std::vector<std::string> shared_gates = {}, tanh_gates = {}, biased_gates = {};
  bool gates_of_values = false;  // gates are projected from the values, after their convolution

  enum class Skip { none, head, channel };
  Skip skip = Skip::none;      // + D·v, where D starts at 1
  bool skip_is_drawn = false;  // or at N(0, 1)

  enum class Norm { none, rms_of_heads, rms, layer_of_heads, layer };
  Norm norm = Norm::none;  // of the output: of each head's numbers or of the whole row
  // A gain, and of layer norms a shift too. The gain of rms_of_heads is one for all heads, unless
  // each head has its own.
  bool norm_is_learned = true, norms_each_head = false;
  double norm_epsilon = 1e-5;

  // (Σ q ⊙ k ⊙ ρ)·v of each head, added after the norm and before a linear gate, of the keys that
  // the mixer writes (variants/api/written_keys.h); ρ of each head and channel is learned, from
  // this number on (RWKV-7).
  std::optional<double> bonus = {};

  enum class Gate { none, silu, sigmoid, gelu, linear };  // linear: as it is projected
  Gate gate = Gate::none;  // of the output, projected from the layer's input
  // Of its projection in two steps; 0: one matrix; -1: head_dim; -2: max(32, 5·√width), rounded to
  // a multiple of 32 (RWKV-7's code).
  int64_t gate_rank = 0;
  bool gate_sigmoid_inside = false;  // between the two steps
  bool gate_bias = false;            // of the last step
  bool gate_before_norm = false;

  bool gelu = false;  // of the output, before its projection
  bool glu = false;   // the output projection gives (a, b), and the block a ⊙ σ(b), with biases

  FeedForward feed_forward = FeedForward::plain;

  // The mixer's decoder replaces a step that is taken back (Decoder::step_back), as a cache does;
  // what holds sums adds the next step to it.
  bool replaces_steps = false;

  // For `info`: paper and code that the defaults are of, then what differs from them.
  std::vector<std::string> notes = {};
};

}  // namespace attn
