// csa: compressed sparse attention: one softmax over a window of keys, rows that stand for blocks
// of positions, of which an indexer chooses some, and a learned sink. DeepSeek-AI 2026,
// DeepSeek-V4, sections 2.3.1 and 2.3.2, eqs. 9-23. Time 4·n·(window + keys)·d +
// n²/stride·index_heads·index_dim; heavily compressed attention, scorer=none, 2·n²/stride·d. Memory
// n·d.
#include <algorithm>
#include <cmath>

#include "core/ops/ops.h"
#include "variants/api/gated_attention.h"
#include "variants/api/variant_info.h"
#include "variants/lowrank/lowrank.h"
#include "variants/reference/gated_rows.h"
#include "variants/selection/selection.h"
#include "variants/softmax/softmax.h"

namespace attn::variants {
namespace {

class Csa final : public GatedAttention {
 public:
  explicit Csa(const AttentionConfig& config)
      : GatedAttention(config),
        window_(params().integer("window")),
        keys_(params().text("scorer") == "lightning" ? params().integer("keys") : 0) {
    const int64_t heads = config.heads, d = config.head_dim;
    by_.stride = params().integer("stride"), by_.overlap = params().flag("overlap");
    const int64_t slots = by_.parts() * by_.stride;
    by_.position = weight("position", Tensor::zeros({heads, slots, d}));
    by_.key_gain = weight("norm_k", Tensor::full({heads, d}, 1));
    by_.value_gain = weight("norm_v", Tensor::full({heads, d}, 1));
    if (params().flag("sink")) sinks_ = weight("sinks", Tensor::zeros({heads}));
    if (keys_ == 0) return;
    const IndexStart start("csa", config.seed, heads, d, params().integer("index_heads"),
                           params().integer("index_dim"), true);
    index_ = {weight("index_query", start.query, false), weight("index_key", start.key, false),
              weight("index_weight", start.weight, false)};
  }

 private:
  Indexer indexer() const {
    if (keys_ == 0) return {};
    return {index_.query.value(), index_.key.value(), index_.weight.value()};
  }
  int64_t rows(int64_t len) const { return len / by_.stride; }

  Var do_gated_forward(const Var& q, const Var& k, const Var& v, std::span<const Var> gates,
                       const Mask& mask) const override {
    const SoftmaxResult near = softmax_with_log_sum(
        q, k, v, {.causal = true, .kv_lengths = mask.kv_lengths, .window = window_});
    const int64_t count = rows(k.dim(2));
    const Var out = joined_softmax(
        near, count > 0 ? far(q, k, v, gates[0], mask.kv_lengths) : SoftmaxResult(), sinks_);
    return zero_padding(out, mask.kv_lengths);  // rows of padding have no gates
  }

  SoftmaxResult far(const Var& q, const Var& k, const Var& v, const Var& logits,
                    const std::vector<int64_t>& lengths) const {
    const int64_t d = q.dim(3);
    Var keys, values;
    {
      const Var both = gated_blocks(by_, k, v, logits, lengths);
      keys = slice(both, 3, 0, d), values = slice(both, 3, d, 2 * d);
    }
    std::vector<int64_t> whole;
    whole.reserve(lengths.size());
    for (const int64_t length : lengths) whole.push_back(rows(length));
    if (keys_ == 0 || keys_ >= keys.dim(2))
      return compressed_memory_with_log_sum(
          q, keys, values, {.stride = by_.stride, .causal = true, .kv_lengths = whole});
    return top_blocks(q, keys, values, keys_, by_.stride, lengths,
                      indexer().scores(q.value(), keys.value(), whole));
  }

  Cost do_cost(const AttentionShape& s) const override {
    AttentionShape near = s, far = s;
    near.causal = far.causal = true;
    const int64_t count = rows(s.kv_len), heads = s.batch * s.heads;
    const auto size = double{sizeof(real)}, queries = static_cast<double>(heads * s.q_len),
               d = static_cast<double>(s.head_dim);
    Cost cost = softmax_cost(near, {.causal = true, .window = window_});
    const RowOptions options = row_options();
    cost.sequence_state_bytes =
        size * static_cast<double>(s.batch * row_index_reals(options, s.kv_len));
    cost.state_bytes = size * static_cast<double>(heads * row_state_reals(options, s.kv_len)) +
                       cost.sequence_state_bytes;
    const double log_sums = size * queries, out = size * queries * d;
    cost.peak_bytes = std::max(cost.peak_bytes + log_sums, 2 * out + log_sums);
    cost.bytes += size * queries * static_cast<double>(by_.width());
    if (count == 0) return cost;
    far.kv_len = count;
    const double blocks = gated_block_flops(by_, heads, s.kv_len),
                 row_bytes = size * 2 * static_cast<double>(heads * count) * d;
    Cost more;
    if (keys_ == 0 || keys_ >= count) {
      far.kv_len = count * by_.stride;
      const CompressedMemoryWork work =
          compressed_memory_work(far, {.stride = by_.stride, .causal = true});
      more.flops = work.flops, more.backward_flops = work.backward_flops;
      more.peak_bytes = work.peak_bytes;
    } else {
      const Indexer made = indexer();
      more = top_cost(far, keys_, made.heads(), made.dim(), true, by_.stride);
      const auto sequences = static_cast<double>(s.batch), n = static_cast<double>(s.q_len),
                 blocks_of_one = static_cast<double>(count);
      more.flops += sequences * (n * made.query_flops() + blocks_of_one * made.key_flops());
      more.peak_bytes += size * sequences *
                         (n * static_cast<double>(made.heads() * (made.dim() + 1)) +
                          blocks_of_one * static_cast<double>(made.dim()));
    }
    cost.flops += more.flops + blocks;
    cost.backward_flops += more.backward_flops + 2 * blocks;
    cost.bytes += 2 * out + 3 * row_bytes;
    cost.peak_bytes =
        std::max({cost.peak_bytes, out + log_sums + 2 * row_bytes,
                  out + 2 * log_sums + row_bytes + more.peak_bytes, 3 * out + 2 * log_sums});
    return cost;
  }

  RowOptions row_options() const {
    return {.by = by_,
            .window = window_,
            .keys = keys_,
            .indexer = indexer(),
            .sinks = sinks_.defined() ? sinks_.value() : Tensor()};
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    if (position[2] > 1) return nullptr;  // each query head makes rows of its own
    return row_decoder(position, capacity, row_options());
  }

  BlockGates by_;
  int64_t window_, keys_;  // keys_ = 0: all rows
  Var sinks_;              // undefined: none
  IndexWeights index_;
};

// The logits of the own block come first, since those of the next are read where there is one.
std::vector<GateInput> csa_gates(const AttentionConfig& config) {
  const int64_t stride = config.params.integer("stride"), d = config.head_dim;
  const int64_t most = config.params.flag("overlap") ? 2 * d : d;
  return {{.name = "compress",
           .help = "logits of the position's share of its block's row, in each channel; with "
                   "overlap then those of its share of the next row",
           .width = most,
           .read = [=](int64_t len) { return len < stride       ? 0
                                             : len < 2 * stride ? d
                                                                : most; }}};
}

// Weights: position [1, heads, slots, d], norm_k and norm_v [1, 1, heads, d], sinks [1, 1, 1,
// heads], and those of dsa's indexer.
oracle::Array csa_reference(const ReferenceInputs& x) {
  const oracle::GatedRows by{x.params().integer("stride"), x.params().flag("overlap"),
                             &x.weights[0]};
  const std::vector<int64_t>& lengths = x.mask.kv_lengths;
  const oracle::Array keys = oracle::gated_rows(by, x.k, x.gates[0], x.weights[1], lengths),
                      values = oracle::gated_rows(by, x.v, x.gates[0], x.weights[2], lengths);
  const bool sink = x.params().flag("sink");
  const size_t index = sink ? 4 : 3;
  oracle::WindowAndRows o{.window = x.params().integer("window"), .stride = by.stride};
  if (sink) o.sinks = &x.weights[3];
  if (x.params().text("scorer") == "lightning") {
    o.keep = x.params().integer("keys");
    o.score = oracle::shared_lightning_scores(
        x.q, keys, x.weights[index], x.weights[index + 1], x.weights[index + 2],
        x.params().integer("index_heads"), x.params().integer("index_dim"));
  }
  return oracle::window_and_rows(x.q, x.k, x.v, keys, values, o, lengths, x.rows);
}

}  // namespace

VariantInfo csa() {
  return {
      .name = "csa",
      .family = "selection",
      .summary = "one softmax over a window, rows of blocks that an indexer chooses, and a sink",
      .paper = "DeepSeek-AI 2026, DeepSeek-V4, sections 2.3.1 and 2.3.2, eqs. 9-23",
      .cost_formula =
          "4·n·(window + keys)·d + 10·n·d FLOPs a head, and n²/stride·index_heads·index_dim a "
          "sequence; scorer=none 2·n²/stride·d a head; memory 3·n·d; in a layer "
          "4·n·width·heads·d more",
      .traits = {.causal = true, .random = true, .decode = true, .nonlinear = true, .gated = true},
      .params =
          {{"stride", 4, "positions of a block, which becomes one key and one value", 1, 4096},
           {"overlap", true, "a row is made of its block and of the one before"},
           {"window", 127, "keys before the query, besides its own, that it sees themselves", 0,
            1'000'000'000},
           {"sink", true, "a learned logit of each head that carries no value"},
           {"scorer",
            {"lightning", "none"},
            "lightning: an indexer chooses the rows that a query sees; none: it sees all, as in "
            "heavily compressed attention, where stride is 128 without overlap"},
           ParamSpec("keys", 64, "rows that a query sees", 1, 65536).when("scorer", "lightning"),
           ParamSpec("index_heads", 2, "heads of the indexer", 1, 64).when("scorer", "lightning"),
           ParamSpec("index_dim", 16,
                     "width of a head of the indexer; its keys pass a layer norm, which leaves of "
                     "two channels no more than signs",
                     3, 256)
               .when("scorer", "lightning")},
      .make = make_as<Csa>,
      .reference = csa_reference,
      .gates = csa_gates,
      .causal_alone = true,
      .notes =
          {"position [heads, slots, d] is added to the logits of a block's positions, those of "
           "the block before last; norm_k and norm_v [heads, d] are the gains of the rows' RMS "
           "norms; sinks [heads] are logits in natural units. Outputs are no linear function of "
           "the values, which a norm scales.",
           "A query sees a block from its last position on. The window and a row may hold the "
           "same position: both count.",
           "In the paper a row is both key and value, of all heads, from a projection of its own "
           "of the layer's input; the two blocks of a row have projections of their own too. "
           "Here the rows are made of the attention's keys and values with the same weights. "
           "Queries and keys of the window pass no norm; in the paper both pass an RMS norm. Left "
           "out: the rotation of some channels, queries from a narrow projection, and the "
           "projection of outputs in groups.",
           "The paper's indexer compresses index keys of its own; this one, that of dsa, reads "
           "the rows of all heads. The choice has no gradient: index_query, index_key and "
           "index_weight stay as drawn, as in dsa without mimicry. Of equal scores the earlier "
           "row is larger. The paper keeps 512 or 1024 rows.",
           "Rows of padding have no gates, and are 0. Where query heads share keys and values "
           "(kv_heads), each still has its own logits, and with them rows of its own."},
      .heads_meet = [](const Params& params) { return params.text("scorer") == "lightning"; }};
}

}  // namespace attn::variants
