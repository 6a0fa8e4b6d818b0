// graph: softmax attention along given edges; without them along a random graph, so that it can be
// timed. Velickovic et al. 2018, arXiv:1710.10903, section 2.1 (the mask), with dot products. Time
// 4·edges·d, memory n·d.
#include <algorithm>
#include <mutex>

#include "variants/attention.h"
#include "variants/kernels/edge_attention.h"
#include "variants/kernels/random_graph.h"
#include "variants/kernels/workers.h"

namespace attn::variants {
namespace {

class Graph final : public Attention {
 public:
  explicit Graph(const AttentionConfig& config)
      : Attention(config), degree_(params().integer("degree")) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    Mask own = mask;
    if (!own.edges)
      own.edges = graph({q.dim(0), q.dim(1), q.dim(2), k.dim(2), q.dim(3), mask.causal});
    return edge_attention(q, k, v, own);
  }

  Cost do_cost(const AttentionShape& shape) const override {
    AttentionShape one = shape;  // batch entries share their graph
    one.batch = 1;
    const auto edges = std::make_shared<const Edges>(random_graph(one, degree_, kSeed));
    const double d = static_cast<double>(shape.head_dim), size = sizeof(real),
                 heads = static_cast<double>(shape.batch * shape.heads);
    const double rows = heads * static_cast<double>(shape.q_len),
                 keys = heads * static_cast<double>(shape.kv_len);
    const double flops = 4 * d * heads * static_cast<double>(edges->keys.size());
    return {.flops = flops,
            .backward_flops = 2.5 * flops,
            .bytes = size * d * 2 * (rows + keys),
            .peak_bytes = size * d * rows + edge_attention_workspace(shape, *edges)};
  }

  // Of the last shape asked for: drawing it costs about as much as attending along it.
  std::shared_ptr<const Edges> graph(const AttentionShape& shape) const {
    const std::lock_guard lock(mutex_);
    if (!last_ || last_shape_.batch != shape.batch || last_shape_.q_len != shape.q_len ||
        last_shape_.kv_len != shape.kv_len)
      last_ = std::make_shared<const Edges>(random_graph(shape, degree_, kSeed));
    last_shape_ = shape;
    return last_;
  }

  static constexpr uint64_t kSeed =
      1;  // one graph for every layer and run, as a given one would be

  int64_t degree_;
  mutable std::mutex mutex_;
  mutable AttentionShape last_shape_;
  mutable std::shared_ptr<const Edges> last_;
};

}  // namespace

VariantInfo graph() {
  return {
      .name = "graph",
      .family = "pattern",
      .summary = "softmax attention along given edges; where none are given, a random graph",
      .paper = "Velickovic et al. 2018, arXiv:1710.10903, section 2.1, with dot products",
      .cost_formula =
          "4·edges·d FLOPs, edges about n·(2·degree+1), causal n·(degree+1); "
          "memory n·d",
      .traits = {.causal = true, .cross = true, .linear_time = true, .convex = true, .edges = true},
      .params = {{"degree", 8,
                  "without given edges: earlier positions, drawn at random, that each position "
                  "is joined to, besides itself; 0: itself alone",
                  0}},
      .make = make_as<Graph>,
      .limit =
          [](const AttentionShape& shape) {
            return VariantInfo::Limit{.params = {{"degree", shape.kv_len}}, .prepare = {}};
          },
      .skip_reason = {}};
}

}  // namespace attn::variants
