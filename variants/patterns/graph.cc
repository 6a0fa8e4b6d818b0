// graph: softmax attention along given edges; without them along a random graph, so that it can be
// timed. Velickovic et al. 2018, arXiv:1710.10903, section 2.1 (the mask), with dot products. Time
// 4·edges·d, memory n·d.
#include <array>

#include "variants/api/expecting.h"
#include "variants/api/packing.h"
#include "variants/api/variant_info.h"
#include "variants/patterns/patterns.h"
#include "variants/softmax/softmax.h"

namespace attn::variants {
namespace {

// One graph for every layer and run, as a given one would be.
constexpr uint64_t kSeed = 1;

class Graph final : public Attention, public ExpectsSequences {
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
    return graph_cost(shape, degree_, kSeed);
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return pattern_decoder(position, capacity, graph_cache(capacity, degree_, kSeed));
  }

  void do_expect(const Packing& packing) const override { last_.keep(packing.distinct()); }

  // Kept, since drawing it costs about as much as attending along it.
  std::shared_ptr<const Edges> graph(const AttentionShape& shape) const {
    return last_.get({shape.batch, shape.q_len, shape.kv_len}, [&] {
      return std::make_shared<const Edges>(random_graph(shape, degree_, kSeed));
    });
  }

  int64_t degree_;
  Cached<std::array<int64_t, 3>, Edges> last_;
};

// The edges of the variant's own draw, with as many earlier neighbours as there must be.
std::shared_ptr<const Edges> drawn_edges(const ReferenceInputs& x) {
  const int64_t degree = x.params().integer("degree");
  const Edges edges =
      random_graph({x.q.batch, x.q.heads, x.q.len, x.k.len, x.q.dim, x.mask.causal}, degree, kSeed);
  for (int64_t i = 0; i < x.q.len; i++) {
    const int64_t position = i + x.k.len - x.q.len;
    if (position < 0) continue;
    const auto row = edges.first.begin() + i;
    const int64_t earlier = std::count_if(edges.keys.begin() + row[0], edges.keys.begin() + row[1],
                                          [&](int32_t key) { return key < position; });
    ATTN_CHECK(earlier == std::min(degree, position), "{} earlier neighbours of position {}",
               earlier, position);
  }
  return std::make_shared<const Edges>(edges);
}

}  // namespace

VariantInfo graph() {
  return {
      .name = "graph",
      .family = "pattern",
      .summary = "softmax attention along given edges; where none are given, a random graph",
      .paper = "Velickovic et al. 2018, arXiv:1710.10903, section 2.1, with dot products",
      .cost_formula = "4·edges·d FLOPs, n·(2·degree+1) edges, causal n·(degree+1); memory n·d",
      .traits = {.causal = true,
                 .cross = true,
                 .linear_time = true,
                 .convex = true,
                 .decode = true,
                 .edges = true},
      .params = {{"degree", 8,
                  "without given edges: random earlier positions that each one is joined to", 0}},
      .make = make_as<Graph>,
      .reference =
          [](const ReferenceInputs& x) {
            ReferenceInputs along = x;
            if (!along.mask.edges) along.mask.edges = drawn_edges(x);
            return oracle::softmax_attention(x.q, x.k, x.v, along.visible());
          },
      .limit = limit_at_length("degree")};
}

}  // namespace attn::variants
