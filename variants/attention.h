// The interface of an attention variant. One variant is one <name>.cc that exports `VariantInfo
// <name>();`; see catalog.cc. Public members check shapes, masks and parameters once; a variant
// overrides the private do_* functions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/params.h"
#include "core/var.h"

namespace attn {

// Who may see whom. Query i sees key j when j < kv_lengths[b] and, if causal, j <= i + kv_len -
// q_len (aligned at the end). A query that sees no key gets zeros, and gives zero gradients.
// Padding is never read. What is only causally hidden is multiplied by zero where it shares a strip
// of queries (6 in softmax kernels, 24 in linear ones) with a query that sees it: there an infinite
// or NaN key or value may reach the queries before its own.
struct Edges {
  std::vector<int64_t> first;  // [batch · q_len + 1]: query r sees keys[first[r] .. first[r + 1])
  std::vector<int32_t> keys;   // of one query ascending, each in [0, kv_len)
};

struct Mask {
  bool causal = false;
  std::vector<int64_t>
      kv_lengths;  // valid keys of each batch entry, in [0, kv_len]; empty: all are valid
  std::shared_ptr<const Edges> edges{};  // sees those alone, of what it would see; null: all
};

struct AttentionShape {
  int64_t batch = 1, heads = 1, q_len = 1, kv_len = 1, head_dim = 1;
  bool causal = false;
};

// By formula, for one forward without gradients. FLOPs count a multiply-add as 2 and leave out exp,
// divisions and maxima. Declaring it is optional: see counted_cost.h for what is counted instead.
struct Cost {
  double flops = 0;
  double backward_flops =
      0;             // of all gradients; 0: twice `flops`, what ops without recomputation cost
  double bytes = 0;  // read and written at least once: q, k, v, the output, and what does not fit a
                     // cache-sized workspace
  double peak_bytes =
      0;  // pool peak above q, k, v and the weights: the output, temporaries and workspace
  double state_bytes =
      0;  // what decoding one more token needs to keep, after kv_len tokens, where trait decode is
  bool declared = true;  // false: the variant declares none, and nothing above says anything
};

// What a variant object is built for.
struct AttentionConfig {
  int64_t heads = 1;
  int64_t head_dim = 1;
  int64_t max_len = 1;  // the longest kv_len that forward will see; fixed-length variants are
                        // built for it, and some defaults follow it
  bool causal = false;
  uint64_t seed = 0;  // of initial weights and random features
  Params params;
};

struct Weight {
  std::string name;
  Var value;
  bool learned = true;  // false: drawn once at random (such as random features)
};

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

// Decoding: the state of batch × heads sequences of one length, and one position at a time after
// it. Equal to causal forward, row by row. Query heads may share the keys, the values and the state
// of fewer heads: query head h has those of head h / (heads / kv_heads), as in multi-query and
// grouped-query attention (arXiv:1911.02150, arXiv:2305.13245). Not recorded; not for two threads
// at once.
class Decoder {
 public:
  virtual ~Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // k, v [batch, kv_heads, len, head_dim]: appends len positions that nobody asks. Their queries
  // q [batch, heads, len, head_dim] are read where keys_are_queries(), and may be left out
  // elsewhere.
  void extend(const Tensor& k, const Tensor& v, const Tensor& q = {});
  // q, out [batch, heads, 1, head_dim], k, v [batch, kv_heads, 1, head_dim]: appends one position
  // and answers its queries. `out` must not overlap q, k or v.
  void step(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out);
  // The next step takes the place of the last one: the same step again and again, for the clock. A
  // cache overwrites that position; a sum cannot take it back, and only its work stays the same.
  // Twice in a row only where nothing is forgotten: a ring has lost what a step pushed out.
  void step_back();

  int64_t length() const { return length_; }  // positions appended
  int64_t capacity() const { return capacity_; }
  bool keys_are_queries() const { return do_keys_are_queries(); }  // as in reformer: k is not read
  int64_t state_bytes() const { return do_state_bytes(); }         // held, whatever the length is
  // By formula, of a step to length() + 1; bytes are the state it reads and writes, and weights.
  // Where the data say who is seen, as in reformer: of the last step made again; before any, the
  // most that it can be.
  double step_flops() const { return do_step_flops(); }
  double step_bytes() const { return do_step_bytes(); }

 protected:
  // `position` is [batch, kv_heads, group, head_dim]: `group` query heads for each head of keys.
  Decoder(const Shape& position, int64_t capacity) : position_(position), capacity_(capacity) {}
  int64_t heads() const { return position_[0] * position_[1]; }  // of keys, of all batch entries
  int64_t group() const { return position_[2]; }
  int64_t head_dim() const { return position_[3]; }

 private:
  virtual void do_extend(const Tensor& k, const Tensor& v) = 0;  // at length()
  virtual bool do_keys_are_queries() const { return false; }     // true: do_extend gets q as k
  // q, out [heads(), group(), head_dim()], k, v [heads(), head_dim()]
  virtual void do_step(const real* q, const real* k, const real* v, real* out) = 0;
  virtual int64_t do_state_bytes() const = 0;
  virtual double do_step_flops() const = 0;
  virtual double do_step_bytes() const = 0;

  Shape position_;
  int64_t capacity_;
  int64_t length_ = 0;
};

class Attention {
 public:
  virtual ~Attention() = default;
  // q [batch, heads, q_len, head_dim]; k and v [batch, heads, kv_len, head_dim] -> [batch, heads,
  // q_len, head_dim].
  Var forward(const Var& q, const Var& k, const Var& v, const Mask& mask = {}) const;
  // By the variant's own formulas; nullopt where it declares none.
  std::optional<Cost> declared_cost(const AttentionShape& shape) const;
  Cost cost(const AttentionShape& shape) const;  // the same; Error where it declares none
  // For `capacity` positions of `batch` sequences; built causal, trait decode. Keys of `kv_heads`
  // heads, of which heads is a multiple; 0: of all.
  std::unique_ptr<Decoder> decoder(int64_t batch, int64_t capacity, int64_t kv_heads = 0) const;
  // What that decoder holds, for batch and kv_len of the shape: by the formula of cost(), or, where
  // none is declared, as a decoder made for it holds.
  double state_bytes(const AttentionShape& shape, int64_t kv_heads = 0) const;
  std::vector<Weight> weights() const { return weights_; }
  const AttentionConfig& config() const { return config_; }

 protected:
  explicit Attention(AttentionConfig config) : config_(std::move(config)) {}
  const Params& params() const { return config_.params; }
  // What weights() lists, in the order of these calls; for constructors.
  Var weight(std::string name, const Tensor& start, bool learned = true);
  // Starts at N(0, deviation²), drawn from the seed's stream of that name.
  Var normal_weight(const std::string& name, const Shape& shape, double deviation);
  // Of matrices [.., in, out]: at N(0, 2 / (in + out)), Glorot and Bengio 2010, eq. 16.
  Var glorot_weight(const std::string& name, const Shape& shape);
  void check_mask(const Mask& mask, int64_t batch, int64_t q_len, int64_t kv_len) const;

 private:
  virtual Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const = 0;
  virtual Cost do_cost(const AttentionShape& shape) const;  // default: not declared
  // `position` as the constructor of Decoder takes it. Null where a group is more than one and each
  // query head needs a state of its own: then it is asked for [batch, heads, 1, head_dim], and keys
  // are repeated. A mixer is never asked for groups.
  virtual std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const;
  int64_t checked_kv_heads(int64_t given) const;
  std::unique_ptr<Decoder> shared_decoder(const Shape& position, int64_t capacity) const;

  friend struct VariantInfo;  // build() says what forward() may be asked for
  AttentionConfig config_;
  std::vector<Weight> weights_;
  Traits traits_ = {.cross = true};
};

struct VariantInfo {
  std::string name;          // the file's stem
  std::string family;        // one of families()
  std::string summary;       // one line
  std::string paper;         // arXiv:…, and the equation
  std::string cost_formula;  // as text: "4·n²·d FLOPs, n·d memory"
  Traits traits;
  std::vector<ParamSpec> params;
  std::function<std::unique_ptr<Attention>(const AttentionConfig&)> make;
  // Parameters that make it equal softmax attention at length n, with the relative error allowed;
  // nullopt or empty: no such limit. `prepare` may then set weights (identity projections).
  struct Limit {
    std::map<std::string, ParamValue> params;
    double tolerance = 1e-5;  // in float; 1e-10 is used in double where tolerance is 1e-5
    std::function<void(const Attention&)> prepare;
    double input_scale = 1;  // of N(0, 1) queries and keys
  };
  std::function<std::optional<Limit>(const AttentionShape&)> limit;
  // Why this shape cannot run with these parameters, beyond what the traits say; nullopt: it can.
  std::function<std::optional<std::string>(const AttentionShape&, const Params&)> skip_reason;

  // Why these parameters cannot decode where the trait is; empty: they can.
  std::function<std::optional<std::string>(const Params&)> no_decoder;

  // What forward looks at with these parameters; empty: at both. A layer makes no projection that
  // nothing reads. Mixers read neither, whatever this says.
  struct Reads {
    bool queries = true, keys = true;
  };
  std::function<Reads(const Params&)> reads;

  // Whether it hides the future even where the mask does not ask for it; empty: never.
  std::function<bool(const Params&)> always_causal;

  // Sentences for `info`: what is not the paper's, what as=lra changes, the axes of weights.
  std::vector<std::string> notes;

  // Whether trait convex holds with these parameters; empty: with all.
  std::function<bool(const Params&)> convex_if;

  // `given` with the limit's parameters in place of its own, and without what then has no effect.
  std::map<std::string, ParamValue> at_limit(std::map<std::string, ParamValue> given,
                                             const Limit& of) const;
  // The whole verdict: traits first (causal, cross), then `skip_reason`.
  std::optional<std::string> why_not(const AttentionShape& shape, const Params& params) const;
  // The same for decoding: trait decode first, then `no_decoder`.
  std::optional<std::string> why_no_decoder(const AttentionShape& shape,
                                            const Params& params) const;
  Reads read_by(const Params& chosen) const {
    if (traits.mixer) return {.queries = false, .keys = false};
    return reads ? reads(chosen) : Reads{};
  }
  bool convex(const Params& chosen) const {
    return traits.convex && (!convex_if || convex_if(chosen));
  }
  // Resolves parameters, then makes. The one way in which the harness builds a variant.
  std::unique_ptr<Attention> build(AttentionConfig config,
                                   const std::map<std::string, ParamValue>& given) const;
};

// What `list` groups variants by, in its order: "exact", "other scores", "pattern", "low rank",
// "kernel", "hashing or routing", "synthetic", "recurrent", "convolution", "control".
const std::vector<std::string>& families();

// The limit of patterns: parameter `reach` as large as the longer of both lengths, and `others`.
std::function<std::optional<VariantInfo::Limit>(const AttentionShape&)> limit_at_length(
    const std::string& reach, const std::map<std::string, ParamValue>& others = {});

template <class T>
std::unique_ptr<Attention> make_as(const AttentionConfig& config) {
  return std::make_unique<T>(config);
}

}  // namespace attn
