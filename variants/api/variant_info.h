// The entry of a variant in the catalogue: its name, traits, parameters and how it is made. One
// variant is one <family>/<name>.cc that exports `VariantInfo <name>();`.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/params.h"
#include "variants/api/attention.h"
#include "variants/api/block.h"
#include "variants/api/reference.h"

namespace attn {

struct VariantInfo;

// What one layer of a model is of.
struct LayerVariant {
  std::shared_ptr<const VariantInfo> variant;
  std::map<std::string, ParamValue> params;  // those that are not the default
  bool operator==(const LayerVariant& other) const;
};

struct VariantInfo {
  std::string name;          // the file's stem; of a stack, its text
  std::string family;        // one of families()
  std::string summary;       // one line
  std::string paper;         // arXiv:…, and the equation
  std::string cost_formula;  // as text: "4·n²·d FLOPs, n·d memory"
  Traits traits;
  std::vector<ParamSpec> params;
  std::function<std::unique_ptr<Attention>(const AttentionConfig&)> make;
  // The mathematics in the plainest form, in double; empty: the contract compares with none, and
  // tables mark the variant as unreferenced.
  Reference reference;
  // What a layer hands on to the next of its variant, [batch, 1, rows, numbers], where `carries`.
  // Rows of padding may hold anything.
  Reference handed_on;
  // The keys that its state is written with, [batch, heads, kv_len, head_dim], where the class
  // derives from WritesKeys (written_keys.h); empty: k.
  Reference written_keys;
  // Parameters for which the variant equals softmax attention, and the relative error allowed.
  // nullopt or empty: there are none. `prepare` may set weights, such as identity projections.
  struct Limit {
    std::map<std::string, ParamValue> params;
    double tolerance = 1e-5;  // in float; 1e-10 is used in double unless sampled
    std::function<void(const Attention&)> prepare;
    double input_scale = 1;  // of N(0, 1) queries and keys
    bool sampled = false;  // reached up to sampling, in either precision: `tolerance` says how far
  };
  std::function<std::optional<Limit>(const AttentionShape&)> limit;
  // Why this shape cannot run with these parameters, besides what the traits say; nullopt: it can.
  std::function<std::optional<std::string>(const AttentionShape&, const Params&)> skip_reason;

  // Why these parameters cannot decode although trait `decode` is set; nullopt or empty: they can.
  std::function<std::optional<std::string>(const Params&)> no_decoder;

  // Whether forward reads queries and keys with these parameters; empty: it reads both. A layer
  // leaves out the projection of what is not read. A mixer reads neither.
  struct Reads {
    bool queries = true, keys = true;
  };
  std::function<Reads(const Params&)> reads;

  // What forward reads beside q, k and v, in the order in which it gets them; empty: nothing. Needs
  // trait `gated`. The parameters of `config` are complete.
  std::function<std::vector<GateInput>(const AttentionConfig& config)> gates;

  // Whether it differs from layer to layer of a model, by AttentionConfig::layer.
  bool follows_layer = false;

  // Whether its layers hand something on to the next of the same variant; see carrying.h.
  bool carries = false;

  // Whether the mechanism is defined for causal attention alone: other shapes cannot run.
  bool causal_alone = false;

  // Whether the variant hides the future even under a mask that is not causal; empty: never.
  std::function<bool(const Params&)> always_causal;

  // Whether rounding errors are of the size of the largest number of the whole sequence, the future
  // included, as those of a Fourier transform are: what hides the future then hides it up to
  // rounding. Empty: never.
  std::function<bool(const Params&)> rounds_with_all;

  // Sentences for `info`: what is not the paper's, what as=lra changes, the axes of weights.
  std::vector<std::string> notes;

  // Whether trait `convex` holds with these parameters, causal or not; empty: it always does.
  std::function<bool(const Params&, bool causal)> convex_if;

  // Whether outputs of a head depend on the queries and keys of other heads with these parameters;
  // empty: never.
  std::function<bool(const Params&)> heads_meet;

  // Whether weights are sums of terms of both signs in a state. At huge logits the terms cancel:
  // rounding then takes outputs out of the hull of the values.
  bool weights_cancel = false;

  // What the gradients of queries and keys differentiate, where trait `surrogate_gradients` holds:
  // a function of the queries and keys of `x` that equals the reference at x = `at`; the gradients
  // are its derivatives there. The other gradients are derivatives of the forward.
  std::function<oracle::Array(const ReferenceInputs& x, const ReferenceInputs& at)> surrogate;

  // Whether trait `surrogate_gradients` holds with these parameters; empty: it holds with all.
  std::function<bool(const Params&)> surrogate_if;

  // Whether trait `bfloat16` holds with these parameters; empty: it holds with all.
  std::function<bool(const Params&)> bfloat16_if;

  // Whether trait `mimicry` holds with these parameters; empty: it holds with all.
  std::function<bool(const Params&)> mimicry_if;

  // How many times more rounding a decoded row, or a gradient that cancels to zero, may have than
  // one of a plain mixer: a norm of what nearly cancels brings up its errors too, as do projections
  // around it.
  double rounding = 1;

  // What the paper's layer puts around the mixer; nullopt: nothing, its layer is the plain one.
  std::optional<LayerBlock> block;
  // The paper's layer where it is a mixer of its own and not a block around this one; empty: it is
  // none. Its name and its parameter `block` are added to it.
  std::function<VariantInfo()> own_layer;
  // Why there is no block although the paper has one; empty: there is one, or the plain layer.
  std::string lacks_block;

  // Of an entry with a block around it: the block's. What follows the mixer in a model's layer.
  FeedForward feed_forward = FeedForward::plain;

  bool has_paper_layer() const { return block || own_layer; }
  std::vector<std::string> paper_layer_notes() const;

  // Of a stack, whose layers differ: one period of them, see stack.h. Empty: one attention.
  std::vector<LayerVariant> layers;

  // `given` overlaid by the limit's parameters, without parameters that then have no effect.
  std::map<std::string, ParamValue> at_limit(std::map<std::string, ParamValue> given,
                                             const Limit& of) const;
  // Why the shape cannot run: by the traits causal and cross and by causal_alone, then by
  // `skip_reason`; nullopt: it can.
  std::optional<std::string> why_not(const AttentionShape& shape, const Params& params) const;
  // Whether the variant, or a layer of a stack, is causal_alone and the shape is not causal.
  bool lacks_causal(const AttentionShape& shape) const;
  // Why the shape cannot decode: by trait decode, `no_decoder`, then why_not(); nullopt: it can.
  std::optional<std::string> why_no_decoder(const AttentionShape& shape,
                                            const Params& params) const;
  Reads read_by(const Params& chosen) const;  // of a stack: what any of its layers reads
  bool is_stack() const { return !layers.empty(); }
  bool is_referenced() const;  // its mathematics is declared, or that of all its layers
  // For so many heads of that size.
  std::vector<GateInput> gates_of(int64_t heads, int64_t head_dim, const Params& chosen) const;
  bool reads_bfloat16(const Params& chosen) const {
    return traits.bfloat16 && (!bfloat16_if || bfloat16_if(chosen));
  }
  bool convex(const Params& chosen, bool causal) const {
    return traits.convex && (!convex_if || convex_if(chosen, causal));
  }
  bool has_surrogate(const Params& chosen) const {
    return traits.surrogate_gradients && (!surrogate_if || surrogate_if(chosen));
  }
  bool can_mimic(const Params& chosen) const {
    return traits.mimicry && (!mimicry_if || mimicry_if(chosen));
  }
  // Fills in default parameters, checks them, and makes the variant. The harness builds variants
  // only here.
  std::unique_ptr<Attention> build(AttentionConfig config,
                                   const std::map<std::string, ParamValue>& given) const;
};

// What `list` groups variants by, in its order: "exact", "normaliser", "other scores", "pattern",
// "selection", "low rank", "kernel", "gated", "state space", "hashing or routing", "synthetic",
// "recurrent", "convolution", "control".
const std::vector<std::string>& families();

// The limit of a pattern: parameter `reach` set to the longer of q_len and kv_len, and `others`.
std::function<std::optional<VariantInfo::Limit>(const AttentionShape&)> limit_at_length(
    const std::string& reach, const std::map<std::string, ParamValue>& others = {});

template <class T>
std::unique_ptr<Attention> make_as(const AttentionConfig& config) {
  return std::make_unique<T>(config);
}

}  // namespace attn
