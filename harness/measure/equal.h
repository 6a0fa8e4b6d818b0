// Layers of different variants made equal on purpose: the width of the model and of its
// feed-forward are chosen so that a variant's layers have as many parameters, or take as many
// FLOPs, as those of exact attention.
#pragma once

#include <cstdint>
#include <string>

#include "harness/model/residual_blocks.h"

namespace attn {

enum class Equal { width, parameters, flops };

inline constexpr double kEqualWithin = 0.02;  // of what exact attention has

// Layers of a model, without its embedding and its head.
struct LayersSpec {
  LayerConfig layer;   // max_len: the length at which FLOPs are counted
  int64_t layers = 1;  // `layer` may be a stack
  int64_t batch = 1;   // sequences of which FLOPs are counted: some work is done once for all
};

struct LayerSizes {
  int64_t width = 0, feed_forward = 0;
  int64_t parameters = 0;  // learned numbers of all layers
  double flops = 0;        // of a forward pass of the batch through all layers
};
// Builds a layer with one unit of feed-forward, and runs a variant that declares no cost.
LayerSizes sizes_of(const LayersSpec& spec);

// `given` with another width and feed_forward; those given are of layers of `to`, exact attention,
// which the layers become equal to. The width stays where a feed-forward between half and twice the
// given one makes them equal. Else head_dim changes, in steps of eight where these suffice, to one
// where a feed-forward between half and twice its share of the width does. Error where there is
// none.
LayerConfig equalised(const LayersSpec& given, Equal equal, const VariantInfo& to);

}  // namespace attn
