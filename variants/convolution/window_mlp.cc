// window_mlp: a network of one hidden layer over the rows within `window` of each position, side by
// side: O_i = c + U·tanh(b + H·[x_{i-w}; …; x_{i+w}]), the same at every position. Bengio et al.
// 2003, JMLR 3, eq. 1, without direct connections. Without the hidden layer it would be `conv`.
// Time 2·n·((2w+1)·d·hidden + hidden·d), causal w+1 rows; memory n·(hidden + d).
#include "variants/api/variant_info.h"
#include "variants/reference/mixers.h"
#include "variants/convolution/convolution.h"

namespace attn::variants {
namespace {

class WindowMlp final : public WindowNet {
 public:
  explicit WindowMlp(const AttentionConfig& config)
      : WindowMlp(config, config.params.integer("window"), config.params.integer("hidden")) {}

 private:
  WindowMlp(const AttentionConfig& config, int64_t window, int64_t hidden)
      : WindowNet(config, config.causal ? window + 1 : 2 * window + 1, window) {
    add_layer(hidden > 0 ? hidden : width(), "hidden", "hidden_bias");
    add_layer(width(), "output", "output_bias");
  }
};

}  // namespace

VariantInfo window_mlp() {
  return {.name = "window_mlp",
          .family = "convolution",
          .summary = "a network of one hidden layer over a window, without queries and keys",
          .paper = "Bengio et al. 2003, JMLR 3, eq. 1, without direct connections",
          .cost_formula =
              "2·n·h·d·(2w+2) FLOPs for h hidden units and a width of d = heads · "
              "head_dim, causal 2·n·h·d·(w+2); memory n·(h + d)",
          .traits = {.causal = true, .linear_time = true, .decode = true, .mixer = true},
          .params = {{"window", 2,
                      "positions seen on each side of an output's own (causal: before it)", 0},
                     {"hidden", 0, "units of the hidden layer; 0: as many as the width", 0}},
          .make = make_as<WindowMlp>,
          .reference =
              [](const ReferenceInputs& x) {
                std::vector<oracle::Array> weights;
                for (const oracle::Array& weight : x.weights)
                  weights.push_back(oracle::flat(weight));
                return oracle::split(oracle::window_network(oracle::merged(x.v), weights,
                                                            x.params().integer("window"),
                                                            {x.mask.kv_lengths}, x.rows),
                                     x.v.heads);
              },
          .notes = {"Weights [rows, in, out] for x·W, the earliest position first."}};
}

}  // namespace attn::variants
