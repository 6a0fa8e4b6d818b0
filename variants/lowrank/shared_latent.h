// Keys and values of all heads from one latent a position, and decoding from a cache of latents
// alone. DeepSeek-AI 2024, arXiv:2405.04434, eqs. 9 to 19. A step costs 2·heads·(2·latent + rotary)
// FLOPs a position.
#pragma once

#include <cstdint>
#include <memory>

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/api/decoder.h"

namespace attn {

// With h heads of d numbers, a latent of r and a rotated key of R numbers.
struct SharedLatent {
  int64_t heads = 1;
  Var down;        // [width, r + R]
  Var gain;        // [r], of the normalisation; undefined: none
  Var up_k, up_v;  // [r, h·d]
  Var query;       // [width, h·(d + R)]
  Var out;         // [h·d, width]

  int64_t latent() const { return up_k.dim(0); }
  int64_t rotary() const { return down.dim(1) - latent(); }
  int64_t head_dim() const { return up_k.dim(1) / heads; }
  int64_t numbers() const;  // of all weights but the gain
};

// Of rows x [batch, len, width] that begin at position `first` of the table [positions, R].
struct LatentRows {
  Var latent;   // [batch, len, r], normalised
  Var rotated;  // [batch, 1, len, R]; undefined where R is 0
};
LatentRows latent_rows(const Var& x, const SharedLatent& w, const Tensor& table, int64_t first);
// [batch, heads, len, d + R]: the last R numbers are rotated.
Var latent_queries(const Var& x, const SharedLatent& w, const Tensor& table, int64_t first);

// Of a forward of keys and values made for each head, and its projections.
Cost latent_attention_cost(const AttentionShape& shape, const SharedLatent& weights);

// The state is r + R numbers a position, however many heads there are.
std::unique_ptr<Decoder> latent_decoder(const Shape& position, int64_t capacity,
                                        const SharedLatent& weights, const Tensor& table);

}  // namespace attn
