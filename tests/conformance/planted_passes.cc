// Faults of one kind of pass alone: long ones without a mask, recorded ones, those with edges,
// decode steps; and costs that are right at the usual shapes. See planted.h.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/counters.h"
#include "core/ops/ops.h"
#include "tests/conformance/planted_softmax.h"
#include "tests/conformance/planted.h"
#include "variants/catalog.h"

namespace attn {
namespace {

using Index = int64_t;

const Traits kMaskedPasses{.causal = true, .cross = true, .linear_memory = false};

Var with_nan_gradient(const Var& x) {
  return with_gradient(x, [](double) { return std::numeric_limits<double>::quiet_NaN(); });
}

// A matrix of so many bytes that the pool does not count, and 1. The compiler may not leave the
// matrix out, because it is read as volatile.
double touch(Index bytes) {
  const std::vector<unsigned char> matrix(static_cast<size_t>(bytes), 1);
  const volatile unsigned char* entries = matrix.data();
  return entries[bytes / 2];
}

// Exact attention of the catalogue, with changes to what it is given and to its decoder's steps.
struct FullChanges {
  bool weighted_forward = false;  // a learned weight that starts at 1 multiplies the queries, but
                                  // not those of steps
  std::function<Var(const Attention& full, const Var& q, const Var& k, const Var& v, const Mask&)>
      forward;
  Index channels_of_a_step = 1 << 20;  // further ones of a query are read as zeros
  double step_bytes = 1;               // times what a step moves, declared and counted
};

class ChangedDecoder final : public Decoder {
 public:
  ChangedDecoder(const Shape& position, Index capacity, std::unique_ptr<Decoder> full,
                 const FullChanges& changes)
      : Decoder(position, capacity), position_(position), full_(std::move(full)), c_(changes) {}

 private:
  void do_extend(const Tensor& k, const Tensor& v) override { full_->extend(k, v); }
  void do_step(const real* q, const real* k, const real* v, real* out) override {
    const Index batch = position_[0], heads = position_[1], dim = position_[3];
    const Tensor query({batch, heads * position_[2], 1, dim}), key({batch, heads, 1, dim}),
        value(key.shape()), result(query.shape());
    for (Index i = 0; i < query.size(); i++)
      query[i] = i % dim < c_.channels_of_a_step ? q[i] : real(0);
    std::copy_n(k, key.size(), key.data());
    std::copy_n(v, value.size(), value.data());
    if (full_->length() > length()) full_->step_back();
    full_->step(query, key, value, result);
    count_bytes((c_.step_bytes - 1) * full_->step_bytes());
    std::copy_n(result.data(), result.size(), out);
  }
  Index do_state_bytes() const override { return full_->state_bytes(); }
  double do_step_flops() const override { return full_->step_flops(); }
  double do_step_bytes() const override { return c_.step_bytes * full_->step_bytes(); }

  Shape position_;
  std::unique_ptr<Decoder> full_;
  FullChanges c_;
};

class ChangedFull final : public Attention {
 public:
  ChangedFull(const AttentionConfig& config, FullChanges changes)
      : Attention(config), full_(find_variant("full").build(config, {})), c_(std::move(changes)) {
    if (c_.weighted_forward) factor_ = weight("factor", Tensor::full({config.head_dim}, 1));
  }

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    if (c_.weighted_forward) return full_->forward(multiply(q, factor_), k, v, mask);
    return c_.forward ? c_.forward(*full_, q, k, v, mask) : full_->forward(q, k, v, mask);
  }
  Cost do_cost(const AttentionShape& shape) const override { return full_->cost(shape); }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, Index capacity) const override {
    return std::make_unique<ChangedDecoder>(position, capacity,
                                            full_->decoder(position[0], capacity, position[1]), c_);
  }

  std::unique_ptr<Attention> full_;
  FullChanges c_;
  Var factor_;  // [head_dim]
};

VariantInfo full_with(const std::string& name, const FullChanges& changes) {
  VariantInfo info = find_variant("full");
  info.name = name;
  info.traits.bfloat16 = false;
  info.traits.decode = !changes.forward;
  info.make = [changes](const AttentionConfig& config) {
    return std::make_unique<ChangedFull>(config, changes);
  };
  return info;
}

}  // namespace

std::vector<PlantedVariant> planted_passes() {
  std::vector<PlantedVariant> list;
  const auto plant = [&](const std::string& check, const std::string& name, const Faults& faults,
                         bool at_quick = true) {
    list.push_back(
        {softmax_with(name, faults, kMaskedPasses, check == "reference"), check, at_quick});
  };

  // Lengths
  plant("reference", "half_the_keys_beyond_140",
        {.sees =
             [](const Pass& p, Index, Index, Index, Index j, bool seen) {
               return seen && (p.mask.causal || p.padded() || p.kv_len <= 140 || j < p.kv_len / 2);
             }},
        false);
  plant("reference", "last_tile_lost_unmasked",
        {.sees =
             [](const Pass& p, Index, Index, Index, Index j, bool seen) {
               return seen && (p.mask.causal || p.kv_len < 500 || j < p.kv_len / 64 * 64);
             }},
        false);
  plant("causality", "leak_at_the_edge_of_a_tile",
        {.sees = [](const Pass& p, Index, Index, Index i, Index j,
                    bool seen) { return seen || (!p.cross() && i == 127 && j == 128); }},
        false);

  // Recorded passes
  plant("calls", "keys_of_the_first_recorded_pass", {.key = [](const Var& k, const Pass& p) {
          if (!p.recorded) return k;
          for (const Tensor& earlier : p.kept.tensors)
            if (earlier.shape() == k.shape())
              return add(Var(earlier), add(k, scale(Var(k.value()), -1)));
          p.kept.tensors.push_back(k.value().clone());
          return k;
        }});
  plant("calls", "keeps_recorded_outputs", {.output = [](const Var& out, const Pass& p) {
          if (p.recorded) p.kept.tensors.push_back(out.value().clone());
          return out;
        }});
  plant("recording", "clips_gradients_at_ten", {.output = [](const Var& out, const Pass&) {
          return with_gradient(out, [](double slope) { return std::clamp(slope, -10.0, 10.0); });
        }});
  plant("recording", "small_gradients_are_zero", {.output = [](const Var& out, const Pass&) {
          return with_gradient(out, [](double s) { return std::abs(s) < 1e-5 ? 0 : s; });
        }});

  // Memory and costs
  plant("memory", "a_vector_of_bytes", {.logits = [](const Var& x, const Pass& p) {
          return scale(x, touch(p.q_len * p.kv_len));
        }});
  plant("memory", "a_vector_when_causal",
        {.logits =
             [](const Var& x, const Pass& p) {
               return p.mask.causal ? scale(x, touch(4 * p.q_len * p.kv_len)) : x;
             }},
        false);
  plant("memory", "a_vector_in_backward",
        {.output =
             [](const Var& out, const Pass& p) {
               const Index bytes = 4 * p.q_len * p.kv_len;
               const auto first = std::make_shared<bool>(true);
               return with_gradient(out, [bytes, first](double slope) {
                 return std::exchange(*first, false) ? slope * touch(bytes) : slope;
               });
             }},
        false);
  plant("flops", "flops_of_16_channels_and_4_heads",
        {.cost = [](Cost& cost, const AttentionShape& s) {
          cost.flops *= 64.0 / static_cast<double>(s.head_dim * s.batch * s.heads);
        }});
  list.push_back({full_with("step_bytes_ten_times_over", {.step_bytes = 10}), "decode"});

  // Decode steps and edges
  list.push_back({full_with("steps_of_8_channels", {.channels_of_a_step = 8}), "decode"});
  list.push_back({full_with("steps_without_a_weight", {.weighted_forward = true}), "decode"});
  list.push_back({full_with("scaled_by_the_share_of_edges",
                            {.forward =
                                 [](const Attention& full, const Var& q, const Var& k, const Var& v,
                                    const Mask& mask) {
                                   const Var out = full.forward(q, k, v, mask);
                                   if (!mask.edges) return out;
                                   return scaled_rows(out, [&](Index b, Index, Index i) {
                                     const auto row = mask.edges->first.begin() + b * q.dim(2) + i;
                                     const auto listed = static_cast<double>(row[1] - row[0]);
                                     return 0.5 + 0.5 * listed / static_cast<double>(k.dim(2));
                                   });
                                 }}),
                  "reference"});
  list.push_back(
      {full_with("nan_gradients_beside_no_edge",
                 {.forward =
                      [](const Attention& full, const Var& q, const Var& k, const Var& v,
                         const Mask& mask) {
                        bool empty = false;
                        for (size_t r = 0; mask.edges && r + 1 < mask.edges->first.size(); r++)
                          empty |= mask.edges->first[r] == mask.edges->first[r + 1];
                        if (!empty) return full.forward(q, k, v, mask);
                        return full.forward(q, with_nan_gradient(k), with_nan_gradient(v), mask);
                      }}),
       "edges"});
  return list;
}

std::vector<PlantedAtShape> planted_at_shapes() {
  const auto planted = [](const std::string& name, const Faults& faults) {
    return softmax_with(name, faults, kMaskedPasses, true);
  };
  return {{planted("key_gradient_at_64_channels",
                   {.key =
                        [](const Var& k, const Pass&) {
                          return k.dim(3) == 64 ? with_gradient(k, [](double s) { return 1.5 * s; })
                                                : k;
                        }}),
           {.heads = 2, .head_dim = 64}},
          {planted("eighth_head_halved", {.output =
                                              [](const Var& out, const Pass&) {
                                                return scaled_rows(out, [](Index, Index h, Index) {
                                                  return h >= 7 ? 0.5 : 1.0;
                                                });
                                              }}),
           {.heads = 8, .head_dim = 16}},
          {planted("tile_of_128_when_causal_at_40_channels",
                   {.sees =
                        [](const Pass& p, Index, Index, Index, Index j, bool seen) {
                          return seen && (p.kv_len < 129 || j < 128 || !p.mask.causal);
                        }}),
           {.heads = 2, .head_dim = 40, .causal = true}},
          {full_with("steps_of_64_channels", {.channels_of_a_step = 64}),
           {.heads = 2, .head_dim = 128, .causal = true}}};
}

}  // namespace attn
