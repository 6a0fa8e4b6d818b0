// Answers of a variant beside other answers of the same variant, for inputs for which the two must
// agree. They stand in for a reference where none is declared, or where it would take too long.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/verify/outputs.h"

namespace attn {

constexpr int64_t kTrialLength = 96;  // where an identity is tried before it is asked for

struct ComparedIdentities {
  std::vector<std::string> names;  // of those that were compared; empty: none applies
  int64_t rows = 0;
  double error = 0, bound = 0;
  std::optional<std::string> fault;
  // Of an identity that no trait promises (copies, suffix): the fault may be that it does not hold
  // of the variant at this length.
  std::optional<std::string> doubt;
};

// An identity is asked for at the length of the pass only if it holds at a short length, where the
// contract checks compare more:
// - prefix: of a causal pass, the first outputs are those of the first positions alone.
// - suffix: the last output is that of the last positions alone, as of a window.
// - copies: where a sequence is the same piece several times, an output is that of the piece alone;
//   of a causal pass, at the ends of the pieces. So it is where weights are a function of a set.
// - permutation: permuted positions permute the outputs.
// - padding: padded down to a short length, the outputs are those of the short sequence.
// - ones: the values 1 give 1 (trait convex).
// - decoder: the last output is what a decoder answers to the last token.
// - float32: in bfloat16, the outputs are those of float32 up to rounding.
// None is known of a layer that receives what another hands on.
ComparedIdentities compare_identities(const SeenPass& seen, Dtype dtype);

// Gradients of the last pass of `workload`, in mode train at scope attention, beside differences of
// its own outputs along one random direction through all inputs and weights. Where outputs jump
// along it, as behind a choice of keys, those inputs and weights are compared that move no choice.
// nullopt where there is none, and where gradients and differences do not agree at a short length
// either. Costs two forward passes, or four and four for each input and weight.
struct ComparedDifferences {
  double error = 0, bound = 0;  // of the gradients' length
  std::optional<std::string> fault;
};
std::optional<ComparedDifferences> compare_differences(const Workload& workload);

}  // namespace attn
