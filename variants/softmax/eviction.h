// What a decoder of exact attention keeps of its cache: the methods, how many positions they keep,
// and the decoder that forgets. Attention itself stays exact softmax over what a step sees.
//   recent  the last positions
//   random  drawn by the seed
//   sinks   the first 4 positions and the last ones (StreamingLLM, arXiv:2309.17453)
//   h2o     the last half, and those with the largest sum of weights so far (arXiv:2306.14048)
//   tova    all but those of the smallest weights of the last query, averaged over the heads of the
//           sequence (arXiv:2401.06104)
//   snapkv  at the end of a prompt, what its last queries vote for (arXiv:2404.14469)
//   norm    the keys of the smallest l2 norm (arXiv:2406.11430)
//   quest   everything is kept; a step reads the pages of 16 positions whose least and largest keys
//           promise the highest logits (arXiv:2406.10774)
// A step sees what is kept and its own position; then at most the budget is kept. A prompt, which
// is all positions appended at once since the last step, is seen whole by its own queries, and ends
// with the next step: how it is divided into calls of extend() changes nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/base/enum_names.h"
#include "core/base/params.h"
#include "variants/api/cost.h"
#include "variants/api/decoder.h"

namespace attn {

enum class Evict { none, recent, random, sinks, h2o, tova, snapkv, norm, quest };

constexpr std::array<EnumName<Evict>, 9> names_of(Evict) {
  using enum Evict;
  return {{{none, "none"},
           {recent, "recent"},
           {random, "random"},
           {sinks, "sinks"},
           {h2o, "h2o"},
           {tova, "tova"},
           {snapkv, "snapkv"},
           {norm, "norm"},
           {quest, "quest"}}};
}

struct Eviction {
  Evict method = Evict::none;
  double budget = 1;             // positions of each head of keys; below 1: a share of those so far
  bool at_prompt_alone = false;  // forgets at the end of a prompt; later positions are kept
  uint64_t seed = 0;             // of method random

  // How many are kept after `so_far` positions, at least one.
  int64_t positions(int64_t so_far) const {
    if (budget >= 1) return static_cast<int64_t>(budget);
    constexpr double kRounding = 1e-9;  // 0.3 · 10 is 3
    return std::max<int64_t>(
        1, static_cast<int64_t>(budget * static_cast<double>(so_far) + kRounding));
  }
  // The first length at which a step does not see all positions; nullopt: none.
  std::optional<int64_t> forgets_from() const {
    if (method == Evict::none) return std::nullopt;
    return budget >= 1 ? positions(0) + 1 : 2;
  }
  // Whether weights of several query heads are added up: of those that share keys, and in tova of
  // all, shared or not.
  bool sums_over_heads(int64_t heads, int64_t kv_heads) const {
    if (method == Evict::tova) return heads > 1;
    return (method == Evict::h2o || method == Evict::snapkv) && kv_heads < heads;
  }
};

inline constexpr int64_t kSinkPositions = 4;       // that sinks keeps, as in its paper
inline constexpr int64_t kObservedQueries = 32;    // that vote in snapkv, half the budget at most
inline constexpr int64_t kNeighboursAveraged = 2;  // on each side, of the votes of snapkv
inline constexpr int64_t kQuestPage = 16;          // positions, as in its paper

// The parameters evict, budget and when; their values; why a shape cannot run with them, else
// nullopt.
std::vector<ParamSpec> eviction_params();
Eviction eviction_of(const Params& params, uint64_t seed);
std::optional<std::string> why_no_eviction(const AttentionShape& shape, const Params& params);

// In [0, 1), of a position of a head of keys: the positions with the largest draws are kept.
double eviction_draw(uint64_t seed, int64_t head, int64_t position);

// A step costs 4·d FLOPs for each query and position that it sees; h2o, tova and snapkv need the
// queries of a prompt, and h2o adds up the weights of all of them: 2·n²·d FLOPs a query head.
std::unique_ptr<Decoder> evicting_softmax_decoder(const Shape& position, int64_t capacity,
                                                  const Eviction& eviction);
// The bytes of its state after a step at the last of shape.kv_len positions that were steps, for
// heads that share no keys.
int64_t eviction_state_bytes(const Eviction& eviction, const AttentionShape& shape);

}  // namespace attn
