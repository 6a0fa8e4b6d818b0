// The sizes of a problem of linear attention with decay or of the delta rule, the arrays of one
// head, and what a forward saves. n: positions, m: columns of q and k, d: columns of v.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor/tensor.h"
#include "variants/chunked/log_decay.h"

namespace attn {

enum class Decay : uint8_t { none, head, step, channel };  // what each log-decay is of

struct ChunkedProblem {
  int64_t batch = 0, heads = 0, len = 0;
  int64_t key_dim = 0, dim = 0;  // m, d
  int64_t chunk = 64;            // positions from one stored state to the next
  Decay decay = Decay::none;
  LogDecay rule = {};  // what log-decays are of the numbers given for them
  bool delta = false, removal = false, bonus = false;
  double scale = 1;  // of outputs
  std::vector<int64_t> kv_lengths = {};

  // Rows whose pairs are computed together. With a decay for each channel, the range of the
  // factors of a pair grows with the tile, and 16 is the length for which the factored form is
  // nearly always safe (tile_decay.h).
  static constexpr int64_t kRowTile = 64, kChannelTile = 16;
  // Rows of a tile that are multiplied at once, up to the last column that one of them needs.
  static constexpr int64_t kStrip = 24;

  int64_t tile() const {
    return std::max<int64_t>(
        1, std::min({chunk, len, decay == Decay::channel ? kChannelTile : kRowTile}));
  }
  int64_t chunk_rows() const { return std::min(chunk, std::max<int64_t>(len, 1)); }
  int64_t tiles_of_chunk() const { return (chunk_rows() + tile() - 1) / tile(); }
  int64_t chunks(int64_t length) const { return (length + chunk - 1) / chunk; }
  // Log-decays of one head and step.
  int64_t decays() const {
    if (decay == Decay::channel) return key_dim;
    return decay == Decay::none ? 0 : 1;
  }
  // Whether what a step writes depends on the state, and a triangular system gives it.
  bool solves() const { return delta || removal; }
  // Keys that the state is written at: k, and with a removal its own.
  int64_t writes() const { return removal ? 2 : 1; }
  int64_t state_reals() const { return key_dim * dim; }
  int64_t total_heads() const { return batch * heads; }
  int64_t length(int64_t head) const {
    return kv_lengths.empty() ? len : kv_lengths[static_cast<size_t>(head / heads)];
  }
};

// What a forward reads and saves. Undefined tensors are absent. `states` [batch·heads, chunks + 1,
// m, d]: the state before each chunk, and after the last one.
struct ChunkedSaved {
  Tensor q, k, v, log_decay, beta, bonus, erase, remove, out, states;
};

// The arrays of one head.
struct HeadArrays {
  const real *q, *k, *v;
  // What log-decays come from: of the first step; of all steps for Decay::head; null: none.
  const real* log_decay;
  HeadDecay decay_of;
  const real* beta;            // null: no delta rule
  const real* bonus;           // null: none
  const real *erase, *remove;  // null: no removal

  HeadArrays(const ChunkedProblem& p, const ChunkedSaved& s, int64_t head)
      : q(s.q.data() + head * p.len * p.key_dim),
        k(s.k.data() + head * p.len * p.key_dim),
        v(s.v.data() + head * p.len * p.dim),
        log_decay(nullptr),
        decay_of(p.rule, head % p.heads),
        beta(p.delta ? s.beta.data() + head * p.len : nullptr),
        bonus(p.bonus ? s.bonus.data() + head % p.heads * p.key_dim : nullptr),
        erase(p.removal ? s.erase.data() + head * p.len * p.key_dim : nullptr),
        remove(p.removal ? s.remove.data() + head * p.len * p.key_dim : nullptr) {
    if (p.decay == Decay::head)
      log_decay = s.log_decay.data() + head % p.heads;
    else if (p.decay != Decay::none)
      log_decay = s.log_decay.data() + head * p.len * p.decays();
  }
};

int64_t chunked_workspace(const ChunkedProblem& problem);  // of a forward: numbers for each worker

// The indices of `grads`; an undefined tensor is not needed.
enum ChunkedInput : uint8_t {
  kOfQ,
  kOfK,
  kOfV,
  kOfLogDecay,
  kOfBeta,
  kOfBonus,
  kOfErase,
  kOfRemove,
  kOfRates
};
void chunked_backward(const ChunkedProblem& problem, const ChunkedSaved& saved,
                      const Tensor& grad_out, std::span<Tensor> grads);

}  // namespace attn
