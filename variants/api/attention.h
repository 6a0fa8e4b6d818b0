// An attention variant made for one configuration: forward, cost, weights, decoder. Public members
// check shapes, masks and parameters once; a variant overrides the private do_* functions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/autograd/var.h"
#include "core/base/params.h"
#include "core/tensor/bfloat16_tensor.h"
#include "variants/api/cache_type.h"
#include "variants/api/cost.h"
#include "variants/api/decoder.h"
#include "variants/api/gates.h"
#include "variants/api/mask.h"
#include "variants/api/traits.h"

namespace attn {

// What a variant object is built for.
struct AttentionConfig {
  int64_t heads = 1;
  int64_t head_dim = 1;
  int64_t max_len = 1;  // the longest kv_len that forward will see; fixed-length variants are
                        // built for it, and some defaults follow it
  bool causal = false;
  uint64_t seed = 0;  // of initial weights and random features
  Params params;
  int64_t layer = 0;      // of a model, from 0 on
  bool receives = false;  // what an earlier layer of the model hands on, see carrying.h
  // Where a block projects queries and keys to so many numbers, of head_dim, and zeros follow them;
  // 0: to head_dim. See LayerBlock::key_dim.
  int64_t key_dim = 0;
};

struct Weight {
  std::string name;
  Var value;
  bool learned = true;  // false: drawn once at random (such as random features)
  bool moved = false;   // not learned, but moved beside the gradient while a model is trained, see
                        // following.h and mimicry.h
};

class Attention {
 public:
  virtual ~Attention() = default;
  // q [batch, heads, q_len, head_dim]; k and v [batch, heads, kv_len, head_dim] -> [batch, heads,
  // q_len, head_dim]. `gates` in the order of gates(), each [batch, heads, kv_len, width].
  Var forward(const Var& q, const Var& k, const Var& v, const Mask& mask = {},
              std::span<const Var> gates = {}) const;
  // The same in bfloat16, without gradients. Unless reads_bfloat16(), q, k and v are widened to
  // float32 on entry and the output is rounded: the widened arrays are part of what a pass holds.
  // With edges, every variant widens. Gates stay in float32: the error of a rounded decay would
  // grow with the number of steps.
  BFloat16Tensor forward(const BFloat16Tensor& q, const BFloat16Tensor& k, const BFloat16Tensor& v,
                         const Mask& mask = {}, std::span<const Var> gates = {}) const;
  // Whether forward reads bfloat16 itself (trait bfloat16) with these parameters.
  bool reads_bfloat16() const { return reads_bfloat16_; }
  // The cost by the variant's own formulas; nullopt: it declares none. Of a shape in bfloat16 with
  // what widening costs.
  std::optional<Cost> declared_cost(const AttentionShape& shape) const;
  Cost cost(const AttentionShape& shape) const;  // the same; Error where none is declared
  // A decoder for `batch` sequences of at most `capacity` positions. Needs trait `decode` and a
  // causal configuration. kv_heads divides heads; 0: every query head has its own keys. For
  // bfloat16, its state holds bfloat16 where the variant can. Another cache than float32 needs
  // trait `typed_cache`; steps are then in either dtype, and computed in float32.
  std::unique_ptr<Decoder> decoder(int64_t batch, int64_t capacity, int64_t kv_heads = 0,
                                   Dtype dtype = Dtype::float32,
                                   CacheType cache = CacheType::float32) const;
  // Bytes that this decoder allocates for shape.batch sequences of shape.kv_len positions: by the
  // formula of cost(), or, without a declared cost, read off a decoder that is made for it.
  double state_bytes(const AttentionShape& shape, int64_t kv_heads = 0) const;
  std::vector<Weight> weights() const { return weights_; }
  // What forward() reads beside q, k and v; empty unless trait `gated`.
  const std::vector<GateInput>& gates() const { return gates_; }
  const AttentionConfig& config() const { return config_; }

 protected:
  explicit Attention(AttentionConfig config) : config_(std::move(config)) {}
  const Params& params() const { return config_.params; }
  // Make a weight; for constructors. weights() lists them in the order of these calls.
  Var weight(std::string name, const Tensor& start, bool learned = true);
  // One that is moved; a mimicry loss gives it a gradient, forward() does not.
  Var moved_weight(std::string name, const Tensor& start);
  // Initial values N(0, deviation²), from the random stream of the seed and that name.
  Var normal_weight(const std::string& name, const Shape& shape, double deviation);
  // For matrices [.., in, out]: N(0, 2 / (in + out)), Glorot and Bengio 2010, eq. 16.
  Var glorot_weight(const std::string& name, const Shape& shape);
  // Those of an attention that this one holds, with `prefix` before their names.
  void adopt_weights(const std::string& prefix, const Attention& inner);
  void check_mask(const Mask& mask, int64_t batch, int64_t q_len, int64_t kv_len) const;
  void check_gates(std::span<const Var> gates, int64_t batch, int64_t kv_len) const;

 private:
  virtual Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const = 0;
  // In place of do_forward for variants with gates, see gated_attention.h.
  virtual Var do_gated_forward(const Var& q, const Var& k, const Var& v, std::span<const Var> gates,
                               const Mask& mask) const;
  virtual Cost do_cost(const AttentionShape& shape) const;  // default: not declared
  // `position` is [batch, kv_heads, group, head_dim], as the constructor of Decoder takes it.
  // Returns null where group > 1 and each query head needs a state of its own; the caller then asks
  // again with [batch, heads, 1, head_dim] and repeats the keys. For a mixer group is always 1.
  virtual std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const;
  // Of variants with trait `bfloat16`; the mask has no edges.
  virtual BFloat16Tensor do_bfloat16_forward(const BFloat16Tensor& q, const BFloat16Tensor& k,
                                             const BFloat16Tensor& v, const Mask& mask) const;
  // As do_decoder, with a state of bfloat16; null: it has none.
  virtual std::unique_ptr<Decoder> do_bfloat16_decoder(const Shape& position,
                                                       int64_t capacity) const;
  // As do_decoder, of variants with trait `typed_cache`, for another type than float32.
  virtual std::unique_ptr<Decoder> do_cached_decoder(const Shape& position, int64_t capacity,
                                                     CacheType cache) const;
  Var checked_forward(const Var& q, const Var& k, const Var& v, const Mask& mask,
                      std::span<const Var> gates) const;
  int64_t checked_kv_heads(int64_t given) const;
  std::unique_ptr<Decoder> shared_decoder(const Shape& position, int64_t capacity) const;
  Cost widened_cost(const AttentionShape& shape) const;

  friend struct VariantInfo;  // build() says what forward() may be asked for
  AttentionConfig config_;
  std::vector<Weight> weights_;
  std::vector<GateInput> gates_;
  Traits traits_ = {.cross = true};
  bool reads_bfloat16_ = false;
};

}  // namespace attn
