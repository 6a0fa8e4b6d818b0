// The pool's peaks of known variants: declared bytes, growth with the length, and sums that must
// hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "harness/measure/peak_memory.h"
#include "variants/catalog.h"

namespace attn::peak_memory_test {
namespace {

MemoryFigures figures_of(const char* kernel, int64_t length, Mode mode = Mode::forward) {
  WorkloadSpec spec;
  spec.variant = &find_variant("full");
  spec.params = {{"kernel", std::string(kernel)}};
  spec.length = length;
  spec.heads = 2;
  spec.head_dim = 16;
  spec.mode = mode;
  spec.causal = mode == Mode::decode;
  Workload workload(spec);
  return measure_memory(workload);
}

double exponent(const MemoryFigures& small, const MemoryFigures& large, double factor) {
  return std::log(static_cast<double>(large.extra_bytes) / static_cast<double>(small.extra_bytes)) /
         std::log(factor);
}

TEST(Memory, MaterializedGrowsQuadraticallyAndAsDeclared) {
  const MemoryFigures small = figures_of("materialized", 256),
                      large = figures_of("materialized", 1024);
  EXPECT_GE(exponent(small, large, 4), 1.9);
  EXPECT_LE(exponent(small, large, 4), 2.05);
  for (const MemoryFigures& found : {small, large}) {
    EXPECT_NEAR(
        static_cast<double>(found.extra_bytes) / static_cast<double>(*found.declared_extra_bytes),
        1, 0.05);
  }
}

TEST(Memory, TiledGrowsLinearlyAndAsDeclared) {
  const MemoryFigures small = figures_of("tiled", 1024), large = figures_of("tiled", 4096);
  EXPECT_LE(exponent(small, large, 4), 1.05);
  for (const MemoryFigures& found : {small, large}) {
    EXPECT_NEAR(
        static_cast<double>(found.extra_bytes) / static_cast<double>(*found.declared_extra_bytes),
        1, 0.05);
  }
}

TEST(Memory, PeakIsInputsAndWhatTheRunAdds) {
  const int64_t length = 512, inputs = 3 * 2 * length * 16 * static_cast<int64_t>(sizeof(real));
  const MemoryFigures found = figures_of("tiled", length);
  EXPECT_EQ(found.peak_bytes, found.extra_bytes + inputs);
  EXPECT_GE(found.peak_bytes, found.activations_bytes);
  EXPECT_LE(found.peak_bytes,
            found.activations_bytes + found.workspace_bytes + found.weights_bytes);
  EXPECT_GE(found.activations_bytes, inputs + inputs / 3);  // and the output
  EXPECT_EQ(found.weights_bytes, 0);
  EXPECT_EQ(found.state_bytes, inputs * 2 / 3);  // the cache of keys and values
}

TEST(Memory, TrainHoldsGradientsToo) {
  const MemoryFigures forward = figures_of("tiled", 512),
                      train = figures_of("tiled", 512, Mode::train);
  EXPECT_GT(train.peak_bytes,
            forward.peak_bytes + 3 * 2 * 512 * 16 * static_cast<int64_t>(sizeof(real)));
  EXPECT_EQ(train.declared_extra_bytes, 0);
}

// Its keys and values and four rows of inputs and output; what they were made from is gone.
TEST(Memory, DecodingHoldsItsState) {
  const int64_t row = 2 * 16 * static_cast<int64_t>(sizeof(real));
  const MemoryFigures found = figures_of("tiled", 3000, Mode::decode);
  EXPECT_EQ(found.state_bytes, 2 * 3000 * row);
  EXPECT_EQ(found.activations_bytes, *found.state_bytes + 4 * row);
  EXPECT_LE(found.extra_bytes, 16 << 10);
  EXPECT_EQ(found.peak_bytes, found.activations_bytes + found.workspace_bytes);
}

// Nor is a forward timed with the recording of a tape: weights of a model want gradients always.
TEST(Memory, ForwardKeepsNoTape) {
  int64_t extra[2] = {};
  for (const Mode mode : {Mode::forward, Mode::train}) {
    WorkloadSpec spec;
    spec.variant = &find_variant("full");
    spec.scope = ScopeKind::model;
    spec.length = 256;
    spec.mode = mode;
    Workload workload(spec);
    extra[mode == Mode::train] = measure_memory(workload).extra_bytes;
  }
  EXPECT_LT(2 * extra[0], extra[1]);
}

TEST(Memory, SaysWhatTheProcessHeldAtMost) {
  const MemoryFigures found = figures_of("materialized", 1024);
  EXPECT_GE(found.rss_peak_bytes, found.peak_bytes);
  EXPECT_LE(found.rss_peak_bytes, int64_t{1} << 40);
}

TEST(Memory, IsTheSameTwice) {
  const MemoryFigures first = figures_of("tiled", 300), second = figures_of("tiled", 300);
  EXPECT_EQ(first.peak_bytes, second.peak_bytes);
  EXPECT_EQ(first.workspace_bytes, second.workspace_bytes);
}

}  // namespace
}  // namespace attn::peak_memory_test
