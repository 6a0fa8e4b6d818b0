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
};

// Learned numbers of all layers. Builds each layer with one unit of feed-forward.
int64_t parameters_of(const LayersSpec& spec);
// Of a forward pass of one sequence of max_len positions through all layers. Runs a variant that
// declares no cost.
double forward_flops_of(const LayersSpec& spec);

struct LayerSizes {
  int64_t width = 0, feed_forward = 0;
  int64_t parameters = 0;  // as parameters_of()
  double flops = 0;        // as forward_flops_of()
};
LayerSizes sizes_of(const LayersSpec& spec);

// `given` with another width and feed_forward; those given are those of layers of `to`, exact
// attention, which the layers become equal to. The width stays where a feed-forward between half
// and twice the given one makes the layers equal; else head_dim, in steps of eight (or less, where
// head_dim is no multiple), is the one with which a feed-forward in proportion comes nearest, and
// the feed-forward makes up the rest. Error where no width comes within kEqualWithin.
LayerConfig equalised(const LayersSpec& given, Equal equal, const VariantInfo& to);

}  // namespace attn
