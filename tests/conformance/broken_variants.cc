// One class with one deliberate fault; see planted.h. A fault takes back the promises that
// it also breaks by design (a leak cannot be exact), so that the check meant for it is the one that
// shows it.
#include "tests/conformance/planted.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <ostream>

#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "variants/api/visible_pairs.h"

namespace attn {
namespace {

enum class Fault {
  none,
  future_leak,
  pads_in_normaliser,
  nan_pads,
  wrong_scale,
  batch_coupling,
  head_coupling,
  query_coupling,
  nan_in_empty_rows,
  key_gradient,
  dead_weight,
  gradient_at_pads,
  hidden_memory,
  half_the_flops,
  not_repeatable,
  thread_dependent,
  not_linear,
  not_convex,
  knows_positions,
  knows_its_row,
  edge_leak,
  edge_lost,
  overflows,
  throws
};

Var identity_with_gradient(const Var& x, std::function<void(const Tensor&, const Tensor&)> add) {
  return custom_op(x.value().clone(), {x}, [add](const Tensor& grad, std::span<Tensor> grads) {
    if (grads[0].defined()) add(grad, grads[0]);
  });
}

// out times 1 + tanh(first query)/10 of this batch entry and head, or of the next one along `dim`
// (0, 1; -1: its own).
Var gated(const Var& out, const Var& q, int dim) {
  Var from = q;
  if (dim >= 0) {
    const std::vector<Var> rolled = {slice(q, dim, 1, q.dim(dim)), slice(q, dim, 0, 1)};
    if (q.dim(dim) > 1) from = concat(rolled, dim);
  }
  const Var gate =
      shift(scale(tanh(slice(slice(from, 2, 0, 1), 3, 0, 1)), 0.1), 1);  // [batch, heads, 1, 1]
  const Shape column{out.dim(0), out.dim(1), out.dim(2) * out.dim(3), 1};
  return reshape(matmul(reshape(out, column), gate), out.shape());
}

std::atomic<int> forwards = 0;

class Textbook final : public Attention {
 public:
  Textbook(const AttentionConfig& config, Fault fault, DecoderFault decoder)
      : Attention(config), fault_(fault), decoder_(decoder) {
    if (fault == Fault::dead_weight) normal_weight("dead", {config.head_dim}, 1);
  }

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override;
  Cost do_cost(const AttentionShape& s) const override;
  Tensor visibility(const Shape& shape, const Mask& mask) const;
  Var faulty_output(Var out, const Var& q) const;
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return textbook_decoder(position, capacity, decoder_);
  }

  Fault fault_;
  DecoderFault decoder_;
};

// 0 where the query sees the key, -inf elsewhere: [batch, heads, q_len, kv_len].
Tensor Textbook::visibility(const Shape& shape, const Mask& mask) const {
  Tensor result(shape);
  const int64_t q_len = shape[2], kv_len = shape[3];
  const Tensor pairs = visible_pairs({.edges = mask.edges}, shape, shape.with(2, kv_len));
  for (int64_t row = 0; row < shape.size() / kv_len; row++) {
    int64_t visible = kv_len;
    if (mask.causal)
      visible = row % q_len + kv_len - q_len + (fault_ == Fault::future_leak ? 2 : 1);
    if (!mask.kv_lengths.empty() && fault_ != Fault::pads_in_normaliser)
      visible = std::min(visible, mask.kv_lengths[static_cast<size_t>(row / q_len / shape[1])]);
    if (fault_ == Fault::edge_leak && kv_len > 1) pairs[row * kv_len + 1] = 1;
    if (fault_ == Fault::edge_lost && mask.edges) pairs[row * kv_len] = 0;
    for (int64_t j = 0; j < kv_len; j++)
      result[row * kv_len + j] = j < visible && pairs[row * kv_len + j] > 0 ? real(0) : -kInfinity;
    if (fault_ == Fault::knows_positions)
      for (int64_t j = 0; j < kv_len; j++) result[row * kv_len + j] += static_cast<real>(j % 2);
  }
  return result;
}

Var Textbook::faulty_output(Var out, const Var& q) const {
  switch (fault_) {
    case Fault::batch_coupling:
      return gated(out, q, 0);
    case Fault::head_coupling:
      return gated(out, q, 1);
    case Fault::query_coupling:
      return gated(out, q, -1);
    case Fault::knows_its_row: {  // how far before the last one
      Tensor factors({out.dim(0), out.dim(1), out.dim(2)});
      for (int64_t i = 0; i < factors.size(); i++)
        factors[i] = (out.dim(2) - i % out.dim(2)) % 2 == 1 ? real(1) : real(1.1);
      return scale_rows(out, Var(factors));
    }
    case Fault::not_linear:
      return add(out, scale(tanh(out), 0.1));
    case Fault::not_convex:
      return scale(out, 1.01);
    case Fault::thread_dependent:
      return scale(out, 1 + 0.01 * (threads() - 1));
    case Fault::not_repeatable:
      return scale(out, threads() == 1 && forwards++ % 2 ? 1 + 8 * double{kEpsilon} : 1);
    default:
      return out;
  }
}

Var Textbook::do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const {
  ATTN_CHECK(fault_ != Fault::throws || q.dim(2) != 7, "sevens are not served");
  Var keys = zero_padding(k, mask.kv_lengths);
  const Var values = fault_ == Fault::nan_pads ? v : zero_padding(v, mask.kv_lengths);
  if (fault_ == Fault::key_gradient && recording({keys}))
    keys = identity_with_gradient(keys, [](const Tensor& grad, const Tensor& sum) {
      for (int64_t i = 0; i < grad.size(); i++) sum[i] += real(1.1) * grad[i];
    });
  if (fault_ == Fault::gradient_at_pads && !mask.kv_lengths.empty())
    keys = add(
        keys,
        scale(subtract(k, identity_with_gradient(k, [](const Tensor&, const Tensor&) {})), 0.1));
  const auto dim = static_cast<double>(q.dim(3));
  const double factor = fault_ == Fault::wrong_scale ? 1 / dim : 1 / std::sqrt(dim);
  Var weights = matmul(scale(q, factor), keys, false, true);  // [batch, heads, q_len, kv_len]
  if (fault_ == Fault::overflows) weights = logarithm(exponential(weights));
  weights = add(weights, Var(visibility(weights.shape(), mask)));
  weights = softmax(weights);
  if (fault_ == Fault::nan_in_empty_rows) {
    const int64_t kv_len = k.dim(2);
    const Tensor spoilt = weights.value().clone();
    for (int64_t i = 0; i < spoilt.size(); i += kv_len)
      if (std::all_of(&spoilt[i], &spoilt[i] + kv_len, [](real w) { return w == 0; }))
        std::fill_n(&spoilt[i], kv_len, std::numeric_limits<real>::quiet_NaN());
    weights = custom_op(spoilt, {weights}, [](const Tensor& grad, std::span<Tensor> grads) {
      if (grads[0].defined()) grads[0].add(grad);
    });
  }
  return faulty_output(matmul(weights, values), q);
}

Cost Textbook::do_cost(const AttentionShape& s) const {
  const auto matrices = static_cast<double>(s.batch * s.heads),
             q_len = static_cast<double>(s.q_len), kv_len = static_cast<double>(s.kv_len),
             dim = static_cast<double>(s.head_dim);
  Cost cost;
  cost.flops = 4 * matrices * q_len * kv_len * dim * (fault_ == Fault::half_the_flops ? 0.5 : 1);
  cost.bytes = sizeof(real) * matrices * (2 * dim * (q_len + kv_len) + 6 * q_len * kv_len);
  // Logits, mask and their sum live at once.
  cost.peak_bytes =
      sizeof(real) * matrices * q_len * (fault_ == Fault::hidden_memory ? 2 * dim : 3 * kv_len);
  cost.state_bytes = sizeof(real) * matrices * 2 * kv_len * dim;
  return cost;
}

VariantInfo with_fault(const std::string& name, Fault fault, const Traits& traits,
                       DecoderFault decoder = DecoderFault::none) {
  VariantInfo info;
  info.name = name;
  info.summary = "softmax attention as in a textbook";
  info.traits = traits;
  info.make = [fault, decoder](const AttentionConfig& config) {
    return std::make_unique<Textbook>(config, fault, decoder);
  };
  return info;
}

// Keys' gradients are `key_gradient`'s, 1.1 times the derivatives; those that are declared are
// `slope` times the derivatives, around keys that are `off` away.
VariantInfo with_surrogate(const std::string& name, double slope, double off) {
  VariantInfo info = with_fault(
      name, Fault::key_gradient,
      {.causal = true, .cross = true, .linear_memory = false, .surrogate_gradients = true});
  const auto everywhere = [](int64_t, int64_t) { return true; };
  info.reference = [=](const ReferenceInputs& x) { return softmax_where(x, everywhere); };
  info.surrogate = [=](const ReferenceInputs& x, const ReferenceInputs& at) {
    ReferenceInputs moved = x;
    for (size_t i = 0; i < x.k.x.size(); i++)
      moved.k.x[i] = at.k.x[i] + slope * (x.k.x[i] - at.k.x[i]) + (i == 0 ? off : 0);
    return softmax_where(moved, everywhere);
  };
  return info;
}

}  // namespace

VariantInfo surrogate() { return with_surrogate("surrogate", 1.1, 0); }

VariantInfo textbook() {
  VariantInfo info = with_fault("textbook", Fault::none,
                                {.exact = true,
                                 .causal = true,
                                 .cross = true,
                                 .linear_memory = false,
                                 .convex = true,
                                 .permutable = true,
                                 .decode = true,
                                 .edges = true,
                                 .rowwise = true});
  info.limit = [](const AttentionShape&) { return VariantInfo::Limit{}; };
  return info;
}

VariantInfo throwing() { return with_fault("throws", Fault::throws, {.linear_memory = false}); }

void PrintTo(const BrokenVariant& broken, std::ostream* out) { *out << broken.info.name; }

std::vector<BrokenVariant> broken_variants() {
  Traits all = textbook().traits;
  all.decode = false;  // a decoder that is right would show the fault of the forward
  const Traits decode{.causal = true, .linear_memory = false, .decode = true};
  const Traits plain{.causal = true, .linear_memory = false};  // promises masks alone
  const Traits cross{.causal = true, .cross = true, .linear_memory = false};
  const Traits bare{.linear_memory = false}, unmasked{.padding = false, .linear_memory = false};
  const Traits bidirectional{.cross = true, .linear_memory = false};
  const Traits rowwise{.cross = true, .padding = false, .linear_memory = false, .rowwise = true};
  Traits edges = cross;
  edges.edges = true;
  Traits convex = plain, permutable = cross, linear_time = all, linear_memory = all;
  convex.convex = permutable.permutable = linear_time.linear_time = linear_memory.linear_memory =
      true;
  std::vector<BrokenVariant> list = {
      {with_fault("future_leak", Fault::future_leak, plain), {"causality"}},
      {with_fault("pads_in_normaliser", Fault::pads_in_normaliser, plain), {"padding"}},
      {with_fault("nan_pads", Fault::nan_pads, all), {"padding"}},
      {with_fault("gradient_at_pads", Fault::gradient_at_pads, plain), {"padding", "gradients"}},
      {with_fault("nan_in_empty_rows", Fault::nan_in_empty_rows, plain), {"empty_rows"}},
      {with_fault("not_linear", Fault::not_linear, cross), {"linearity"}},
      {with_fault("not_convex", Fault::not_convex, convex), {"convexity", "range"}},
      {with_fault("knows_positions", Fault::knows_positions, permutable), {"permutation"}},
      {with_fault("overflows", Fault::overflows, bare), {"range"}},
      {with_fault("batch_coupling", Fault::batch_coupling, unmasked), {"batch"}},
      {with_fault("head_coupling", Fault::head_coupling, bare), {"heads"}},
      {with_fault("query_coupling", Fault::query_coupling, bidirectional), {"queries"}},
      {with_fault("knows_its_row", Fault::knows_its_row, rowwise), {"rowwise"}},
      {with_fault("edge_leak", Fault::edge_leak, edges), {"edges"}},
      {with_fault("edge_lost", Fault::edge_lost, edges), {"edges"}},
      {with_fault("key_gradient", Fault::key_gradient, all), {"gradients"}},
      {with_surrogate("wrong_surrogate", 1.2, 0), {"reference"}},
      {with_surrogate("surrogate_elsewhere", 1.1, 0.01), {"reference"}},
      {with_fault("dead_weight", Fault::dead_weight, plain), {"gradients"}},
      {with_fault("reads_in_secret", Fault::none, plain), {"gradients"}},
      {with_fault("wrong_scale", Fault::wrong_scale, all), {"exact"}},
      {with_fault("wrong_limit", Fault::wrong_scale, cross), {"limit"}},
      {with_fault("half_the_flops", Fault::half_the_flops, all), {"flops"}},
      {with_fault("not_linear_time", Fault::none, linear_time), {"flops"}},
      {with_fault("hidden_memory", Fault::hidden_memory, linear_memory), {"memory"}},
      {with_fault("not_linear_memory", Fault::none, linear_memory), {"memory"}},
      {with_fault("short_ring", Fault::none, decode, DecoderFault::short_ring), {"decode"}},
      {with_fault("not_rescaled", Fault::none, decode, DecoderFault::not_rescaled), {"decode"}},
      {with_fault("prefill_lost", Fault::none, decode, DecoderFault::prefill_lost), {"decode"}},
      {with_fault("tiled_keys", Fault::none, decode, DecoderFault::tiled_keys), {"decode"}},
      {with_fault("hidden_state", Fault::none, decode, DecoderFault::hidden_state), {"decode"}},
      {with_fault("grows", Fault::none, decode, DecoderFault::grows), {"decode"}},
      {with_fault("never_back", Fault::none, decode, DecoderFault::never_back), {"decode"}},
      {with_fault("uncounted_flops", Fault::none, decode, DecoderFault::uncounted_flops),
       {"decode"}},
      {with_fault("uncounted_bytes", Fault::none, decode, DecoderFault::uncounted_bytes),
       {"decode"}},
      {with_fault("second_extend_first", Fault::none, decode, DecoderFault::second_extend_first),
       {"decode"}},
      {with_fault("shared_state", Fault::none, decode, DecoderFault::shared_state), {"decode"}},
      {with_fault("changes_its_input", Fault::none, decode, DecoderFault::changes_its_input),
       {"decode"}},
      {with_fault("extend_after_a_step", Fault::none, decode, DecoderFault::extend_after_a_step),
       {"decode"}},
      {with_fault("odd_chunk_end", Fault::none, decode, DecoderFault::odd_chunk_end), {"decode"}},
      {with_fault("chunk_of_one", Fault::none, decode, DecoderFault::chunk_of_one), {"decode"}},
      {with_fault("not_repeatable", Fault::not_repeatable, all), {"determinism"}},
      {with_fault("not_random", Fault::none, all), {"determinism"}},
      {with_fault("thread_dependent", Fault::thread_dependent, all), {"packed", "threads"}},
  };
  for (BrokenVariant& broken : list) {
    if (broken.info.name == "wrong_limit") broken.info.limit = textbook().limit;
    if (broken.info.name == "not_random") broken.info.traits.random = true;
    if (broken.info.name == "reads_in_secret")
      broken.info.reads = [](const Params&) { return VariantInfo::Reads{.keys = false}; };
  }
  return list;
}

}  // namespace attn
