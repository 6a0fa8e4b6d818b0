// A timed pass over packed sequences, beside the same sequences in a padded batch: attention alone,
// forward, or forward and backward.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "harness/measure/workload.h"
#include "variants/api/packing.h"

namespace attn {

// Inputs N(0, 1), gates and weights are made once, each sequence with its own; the padded batch
// holds the same numbers. Before each pass the last row of the first head of every sequence
// changes, as in Workload. Gradients of the outputs of padding are 0.
class PackedPass {
 public:
  explicit PackedPass(const WorkloadSpec& spec);  // of spec.packed
  ~PackedPass();
  void run();
  bool has_padded() const;  // the variant takes kv_lengths
  void run_padded();
  // A padded pass, where there is one, and then a packed one of the same numbers.
  void run_both();
  bool ran_both() const;  // and nothing since, so that the answers of the two can be compared

  // As those of Workload, of a packed pass: sums over the sequences.
  double flops();
  bool declares_cost() const;
  std::optional<double> bytes() const;
  const Packing& packing() const;
  const WorkloadSpec& spec() const;

  // What a sequence read and was answered in the last run().
  SeenPass seen(int64_t sequence) const;
  // Of the last run() in mode train, by name: of inputs and gates the block of the sequence, [1,
  // heads, len, width], of a mixer its rows [1, len, width].
  std::vector<LeafGradient> input_gradients(int64_t sequence) const;
  std::vector<LeafGradient> weight_gradients() const;  // of all sequences together
  Tensor output_gradient(int64_t sequence) const;      // that went backward
  // Of the padded pass of run_both(), at the positions of the sequence: what seen() has as `out`,
  // and what input_gradients() and weight_gradients() have as gradients.
  Tensor padded_output(int64_t sequence) const;
  std::vector<Tensor> padded_input_gradients(int64_t sequence) const;
  const std::vector<Tensor>& padded_weight_gradients() const;
  // The same sequence by itself, in the same attention, whose weights' gradients it changes.
  std::unique_ptr<GradientPass> alone(int64_t sequence) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attn
