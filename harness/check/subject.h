// The variant under check with its parameters and shapes, seeded inputs, and the verdict of a
// check. Internal to harness/check; contract.h is the interface.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/check/result.h"
#include "variants/api/variant_info.h"

namespace attn {

// The verdict of one check. It keeps the measured value that is worst relative to its bound.
class Verdict {
 public:
  // Requires figure <= bound; NaN fails. `text` is a message for the user that contains the value.
  template <class... Args>
  void expect(double figure, double bound, fmt::format_string<Args...> text, Args&&... args) {
    if (is_worst(figure, bound))
      detail_ =
          fmt::format(text, std::forward<Args>(args)...) + fmt::format("; allowed {:.1e}", bound);
  }
  // Requires that `holds` is true.
  template <class... Args>
  void require(bool holds, fmt::format_string<Args...> text, Args&&... args) {
    if (is_worst(holds ? 0 : 1, 0)) detail_ = fmt::format(text, std::forward<Args>(args)...);
  }
  // Skips the check for the reason `why`, unless an expectation has failed.
  void skip(std::string why) { skipped_ = std::move(why); }
  bool skipped() const { return !skipped_.empty() && !failed(); }
  const std::string& why_skipped() const { return skipped_; }
  bool empty() const { return worst_ < 0; }  // nothing was measured
  bool failed() const { return worst_ > 1; }
  const std::string& detail() const { return detail_; }

 private:
  bool is_worst(double figure, double bound);

  double worst_ = -1;  // figure / bound
  std::string detail_, skipped_;
};

struct Inputs {
  Tensor q, k, v;                  // [batch, heads, q_len | kv_len, head_dim]
  std::vector<Tensor> gates = {};  // of Attention::gates(), each [batch, heads, kv_len, width]

  Inputs clone() const;
  std::vector<Tensor> of_keys() const;  // what belongs to the keys' positions: k, v and gates
  Inputs with_values(Tensor values) const { return {q, k, std::move(values), gates}; }
};

struct Gradients {
  Tensor output;
  Tensor q, k, v;
  std::vector<Tensor> gates;    // in the order of Attention::gates()
  std::vector<Tensor> weights;  // of the learned weights, in the order of Attention::weights()

  std::vector<Tensor> of_keys() const;  // of k, v and gates
};

struct Gap {
  double size = 0;  // max |a - b| / max(max |b|, kSmall); NaN if a value is not finite
  int64_t row = 0;  // index of the maximum in the third dimension
};

enum class ShapeKind { self, cross, all };

struct Subject {
  Subject(const VariantInfo& variant, std::map<std::string, ParamValue> given_params,
          attn_check::Level check_level);

  bool full() const { return level == attn_check::Level::full; }
  bool defaults() const;  // whether all parameters have their defaults
  // The shapes that the variant can run, of lengths up to `longest`: odd and even lengths near the
  // tile sizes, causal and bidirectional.
  std::vector<AttentionShape> shapes(ShapeKind lengths, int64_t longest = 130) const;
  bool can_run(const AttentionShape& shape) const { return !info.why_not(shape, params); }
  std::string why_no_shape() const;  // if shapes() is empty: the reason for the first shape
  std::unique_ptr<Attention> build(const AttentionShape& shape, uint64_t seed = 1) const;

  const VariantInfo& info;
  std::map<std::string, ParamValue> given;
  Params params;
  attn_check::Level level;
  std::optional<AttentionShape> only;  // shapes() gives this one alone
  int64_t published_heads = 1;         // of the shape that `only` stands for
  int64_t only_kv_heads = 0;  // of `only`, where query heads share keys and values; 0: they do not
};

// N(0, 1) values, and queries and keys of scale `scale`; gates as random_gates() makes them.
Inputs make_inputs(const Attention& attention, const AttentionShape& shape, uint64_t seed,
                   double scale = 1);
// Adds N(0, 0.1²) to learned weights: those that start at 0 or 1 would hide that they are not read.
void move_weights(const Attention& attention, uint64_t seed);
// A seed of the output's gradient.
Tensor make_seed(const AttentionShape& shape, uint64_t seed);
Mask mask_of(const AttentionShape& shape, std::vector<int64_t> kv_lengths = {});
Tensor output_of(const Attention& attention, const Inputs& inputs, const Mask& mask);
// The output, and the gradients of ⟨seed, output⟩.
Gradients gradients_of(const Attention& attention, const Inputs& inputs, const Mask& mask,
                       const Tensor& seed);

Tensor part(const Tensor& t, int dim, int64_t begin,
            int64_t end);  // a copy of [begin, end) along dim
Inputs part(const Inputs& inputs, int dim, int64_t begin, int64_t end);
// Appends positions [begin, end) at once, without answers.
void extend(Decoder& decoder, const Inputs& x, int64_t begin, int64_t end);
// Overwrites positions [begin, len) of t [batch, heads, len, dim] with random numbers or with
// `value`; if entry >= 0, only of that batch entry.
void fill_from(const Tensor& t, int64_t begin, double scale, Rng rng, int64_t entry = -1);
void fill_from(const Tensor& t, int64_t begin, real value, int64_t entry = -1);
oracle::Array oracle_array(const Tensor& t);  // of fewer dimensions: with ones in front
// What a reference of this attention reads, with its weights as they are now.
ReferenceInputs reference_inputs_of(const Attention& attention, const Inputs& x, const Mask& mask);
Gap gap(const Tensor& a, const Tensor& b);                     // shapes must agree
double gap_of_inputs(const Gradients& a, const Gradients& b);  // the largest of q, k, v and gates
double weight_bytes(const Attention& attention);
double largest(const Tensor& t);                    // max |t|, NaN if any is NaN
double largest_of_inputs(const Gradients& back);    // of q, k, v and gates
double worst(std::initializer_list<double> sizes);  // their maximum, NaN if any is NaN
// Edges for about one pair in four, drawn at random; none of batch entry 0 leads to a key for which
// is_without_edge() holds.
std::shared_ptr<const Edges> some_edges(const AttentionShape& shape);
bool is_without_edge(int64_t key);
double tolerance(int64_t length);  // for rounding of sums of `length` terms in this precision
std::string text(const AttentionShape& shape);  // "q_len 5, kv_len 33, causal"

}  // namespace attn
