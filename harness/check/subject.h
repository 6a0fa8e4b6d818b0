// The variant under check with its parameters, the shapes it can run, seeded inputs, and the
// verdict that a check fills. Internal to harness/check: check.h is the interface.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/check/result.h"
#include "variants/api/variant_info.h"

namespace attn {

// Keeps, of all figures of one check, the one that is worst against its bound.
class Verdict {
 public:
  // `figure` must not exceed `bound`; NaN fails. `text` is the sentence for the reader and holds
  // the figure.
  template <class... Args>
  void expect(double figure, double bound, fmt::format_string<Args...> text, Args&&... args) {
    if (is_worst(figure, bound))
      detail_ =
          fmt::format(text, std::forward<Args>(args)...) + fmt::format("; allowed {:.1e}", bound);
  }
  // A statement that is true or false.
  template <class... Args>
  void require(bool holds, fmt::format_string<Args...> text, Args&&... args) {
    if (is_worst(holds ? 0 : 1, 0)) detail_ = fmt::format(text, std::forward<Args>(args)...);
  }
  // Nothing to hold against a bound: says why, unless something else failed.
  void skip(std::string why) { skipped_ = std::move(why); }
  bool skipped() const { return !skipped_.empty() && !failed(); }
  const std::string& why_skipped() const { return skipped_; }
  bool empty() const { return worst_ < 0; }  // nothing could be measured
  bool failed() const { return worst_ > 1; }
  const std::string& detail() const { return detail_; }

 private:
  bool is_worst(double figure, double bound);

  double worst_ = -1;  // figure / bound
  std::string detail_, skipped_;
};

struct Inputs {
  Tensor q, k, v;  // [batch, heads, q_len | kv_len, head_dim]
};

struct Gradients {
  Tensor output;
  Tensor q, k, v;
  std::vector<Tensor> weights;  // of the learned weights, in the order of Attention::weights()
};

struct Gap {
  double size =
      0;  // largest |a - b| over the larger of max |b| and kSmall; NaN if anything is not finite
  int64_t row = 0;  // where, along the third dimension
};

enum class Lengths { self, cross, all };

struct Subject {
  Subject(const VariantInfo& variant, std::map<std::string, ParamValue> given_params,
          attn_check::Level check_level);

  bool full() const { return level == attn_check::Level::full; }
  bool defaults() const;  // the parameters are the default ones
  // Odd and even lengths around the tile sizes, causal and not, of those that the variant can run;
  // up to `longest`.
  std::vector<AttentionShape> shapes(Lengths lengths, int64_t longest = 130) const;
  bool can_run(const AttentionShape& shape) const { return !info.why_not(shape, params); }
  std::string why_no_shape() const;  // the reason given for the first shape, when shapes() is empty
  std::unique_ptr<Attention> build(const AttentionShape& shape, uint64_t seed = 1) const;

  const VariantInfo& info;
  std::map<std::string, ParamValue> given;
  Params params;
  attn_check::Level level;
};

Inputs make_inputs(const AttentionShape& shape, uint64_t seed, double scale = 1);
Mask mask_of(const AttentionShape& shape, std::vector<int64_t> kv_lengths = {});
Tensor output_of(const Attention& attention, const Inputs& inputs, const Mask& mask);
// Output, and the gradients of ⟨seed, output⟩.
Gradients gradients_of(const Attention& attention, const Inputs& inputs, const Mask& mask,
                       const Tensor& seed);

Tensor part(const Tensor& t, int dim, int64_t begin,
            int64_t end);  // a copy of [begin, end) along dim
Inputs part(const Inputs& inputs, int dim, int64_t begin, int64_t end);
// Overwrites positions [begin, len) of every matrix of t = [batch, heads, len, dim]; of one batch
// entry if `entry` >= 0.
void fill_from(const Tensor& t, int64_t begin, double scale, Rng rng, int64_t entry = -1);
void fill_from(const Tensor& t, int64_t begin, real value, int64_t entry = -1);
Gap gap(const Tensor& a, const Tensor& b);  // shapes must agree
double largest(const Tensor& t);            // max |t|, NaN if any is NaN
double tolerance(int64_t length);  // rounding of sums of `length` terms in this build's precision
std::string text(const AttentionShape& shape);  // "q_len 5, kv_len 33, causal"

}  // namespace attn
