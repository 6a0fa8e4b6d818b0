// The faults, by the part of a variant that they are in; see planted.h.
#include "tests/conformance/planted.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <ostream>
#include <utility>

#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "tests/conformance/planted_softmax.h"
#include "variants/catalog.h"
#include "variants/features/features.h"

namespace attn {
namespace {

// linear with features relu(x) + 0.5 in place of elu(x) + 1.
class OtherFeatures final : public Attention {
 public:
  explicit OtherFeatures(const AttentionConfig& config) : Attention(config) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return linear_attention(
        q, k, v, {.causal = mask.causal, .kv_lengths = mask.kv_lengths, .map = relu_plain(0.5)});
  }
  Cost do_cost(const AttentionShape& shape) const override {
    return linear_cost(shape, relu_plain(0.5));
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return linear_decoder(position, capacity, relu_plain(0.5));
  }
};

const Traits kMasks{.causal = true, .cross = true, .linear_memory = false};

}  // namespace

VariantInfo faultless(bool referenced) {
  return softmax_with("faultless", {.gains = true}, kMasks, referenced);
}

void PrintTo(const PlantedVariant& planted, std::ostream* out) { *out << planted.info.name; }

std::vector<PlantedVariant> planted_variants() {
  std::vector<PlantedVariant> list;
  // A fault that only a comparison with the mathematics shows.
  const auto referenced = [&](const std::string& name, const Faults& faults, bool at_quick = true) {
    list.push_back({softmax_with(name, faults, kMasks, true), "reference", at_quick});
  };
  // A fault that must show without a reference.
  const auto caught_by = [&](const std::string& check, const std::string& name,
                             const Faults& faults, Traits traits = kMasks, bool at_quick = true) {
    list.push_back({softmax_with(name, faults, traits, false), check, at_quick});
  };
  const auto only_if = [](auto when, const PlantedChange& change) {
    return [when, change](const Var& x, const Pass& p) { return when(p) ? change(x, p) : x; };
  };
  const auto times = [](double factor) {
    return [factor](const Var& x, const Pass&) { return scale(x, factor); };
  };
  const auto cross = [](const Pass& p) { return p.cross(); };
  const auto padded_cross = [](const Pass& p) { return p.cross() && p.padded(); };
  const auto gradient = [](double factor) {
    return [factor](const Var& x, const Pass&) {
      return with_gradient(x, [factor](double slope) { return factor * slope; });
    };
  };
  const auto sees = [](auto rule) {
    Faults faults;
    faults.sees = rule;
    return faults;
  };
  using Index = int64_t;

  // Which keys are seen
  referenced("window_beside_a_mask",
             sees([](const Pass& p, Index, Index, Index i, Index j, bool seen) {
               return seen && j > p.position(i) - 40;
             }));
  referenced("not_itself", sees([](const Pass& p, Index, Index, Index i, Index j, bool seen) {
               return seen && (!p.mask.causal || j < p.position(i) || j == 0);
             }));
  referenced("last_valid_key_lost",
             sees([](const Pass& p, Index b, Index, Index, Index j, bool seen) {
               return seen && (!p.padded() || j < p.valid(b) - 1 || j == 0);
             }));
  referenced("last_tile_lost", sees([](const Pass& p, Index, Index, Index, Index j, bool seen) {
               return seen && (p.mask.causal || p.kv_len < 130 || j < p.kv_len / 64 * 64);
             }));
  referenced("last_tile_lost_beyond_500",
             sees([](const Pass& p, Index, Index, Index, Index j, bool seen) {
               return seen && (p.kv_len < 500 || j < p.kv_len / 64 * 64);
             }),
             false);
  referenced("tile_of_64_exactly", sees([](const Pass& p, Index, Index, Index, Index j, bool seen) {
               return seen && (p.kv_len != 64 || j < 63);
             }),
             false);
  referenced("third_head_sees_less", sees([](const Pass&, Index, Index h, Index, Index j,
                                             bool seen) { return seen && (h != 2 || j != 1); }));
  caught_by("causality", "leak_from_24_to_23",
            sees([](const Pass& p, Index, Index, Index i, Index j, bool seen) {
              return seen || (!p.cross() && i == 23 && j == 24);
            }));
  caught_by("causality", "leak_of_one_head",
            sees([](const Pass& p, Index, Index h, Index i, Index j, bool seen) {
              return seen || (h == 1 && j == p.position(i) + 1 && p.kv_len > 40);
            }));
  caught_by("causality", "cross_is_never_causal",
            sees([](const Pass& p, Index b, Index, Index, Index j, bool seen) {
              return seen || (p.cross() && j < p.valid(b));
            }));
  caught_by("queries", "aligned_at_the_start",
            sees([](const Pass& p, Index b, Index, Index i, Index j, bool) {
              return j < p.valid(b) && (!p.mask.causal || j <= i);
            }));
  caught_by("batch", "the_first_length_for_all",
            sees([](const Pass& p, Index, Index, Index i, Index j, bool) {
              return j < p.valid(0) && (!p.mask.causal || j <= p.position(i));
            }));
  caught_by("padding", "padding_of_length_one",
            sees([](const Pass& p, Index b, Index, Index i, Index j, bool seen) {
              return seen || (p.valid(b) == 1 && j == 1 && (!p.mask.causal || j <= p.position(i)));
            }));

  // Scores and weights
  referenced("scale_of_cross_attention", {.query = only_if(cross, times(1.1))});
  referenced("no_scale", {.logits = [](const Var& x, const Pass&) { return scale(x, 2); }});
  referenced("half_precision_weights", {.weights = [](const Var& x, const Pass&) {
               const Tensor rounded = x.value().clone();
               for (real& value : rounded.values()) value = std::round(value * 1024) / 1024;
               return custom_op(rounded, {x}, [](const Tensor& grad, std::span<Tensor> grads) {
                 if (grads[0].defined()) grads[0].add(grad);
               });
             }});
  referenced("rows_off_by_one_percent_in_cross", {.output = only_if(cross, times(1.01))});
  referenced("zeros_for_padded_cross", {.output = only_if(padded_cross, times(0))});
  referenced("divides_by_all_keys_in_padded_cross",
             {.output = only_if(padded_cross, [](const Var& out, const Pass& p) {
                return scaled_rows(out, [&](Index b, Index, Index) {
                  return static_cast<double>(p.valid(b)) / static_cast<double>(p.kv_len);
                });
              })});
  referenced("first_row_copies_its_value", {.output = [](const Var& out, const Pass&) {
               return scaled_rows(out, [](Index, Index, Index i) { return i == 0 ? 0.99 : 1; });
             }});
  referenced("last_channel_of_an_odd_row", {.value = [](const Var& v, const Pass&) {
               if (v.dim(3) % 8 != 1) return v;
               const std::vector<Var> parts = {slice(v, 3, 0, v.dim(3) - 1),
                                               scale(slice(v, 3, v.dim(3) - 1, v.dim(3)), 0.9)};
               return concat(parts, 3);
             }});
  referenced("gains_of_two_heads", {.gains = true, .gains_of = 2});
  caught_by("causality", "future_in_the_normaliser",
            {.weights = [](const Var& weights, const Pass& p) {
              if (!p.mask.causal) return weights;
              return scaled_rows(weights, [&](Index, Index, Index i) {
                return static_cast<double>(p.position(i) + 1) / static_cast<double>(p.kv_len + 1);
              });
            }});
  // A variant that rounds with the whole sequence must hide the future too.
  list.push_back({list.back().info, "causality"});
  list.back().info.name = "future_beside_rounding";
  list.back().info.rounds_with_all = [](const Params&) { return true; };
  caught_by("causality", "temperature_of_the_length", {.logits = [](const Var& x, const Pass& p) {
              return scale(x, std::log(1.0 + static_cast<double>(p.kv_len)));
            }});

  // Channels, heads, batch entries
  const PlantedChange eight_channels = [](const Var& x, const Pass&) {
    if (x.dim(3) <= 8) return x;
    const std::vector<Var> parts = {slice(x, 3, 0, 8), scale(slice(x, 3, 8, x.dim(3)), 0)};
    return concat(parts, 3);
  };
  referenced("first_eight_channels", {.query = eight_channels});
  caught_by("channels", "first_eight_channels_of_values", {.value = eight_channels});
  caught_by("channels", "first_eight_channels_of_keys", {.key = eight_channels});
  caught_by("heads", "mixes_the_head_after_next", {.query = [](const Var& q, const Pass&) {
              if (q.dim(1) < 3) return q;
              const std::vector<Var> rolled = {slice(q, 1, 2, q.dim(1)), slice(q, 1, 0, 2)};
              return add(q, scale(concat(rolled, 1), 0.05));
            }});
  caught_by("heads", "all_heads_use_the_first_keys", {.key = [](const Var& k, const Pass&) {
              const std::vector<Var> same(static_cast<size_t>(k.dim(1)), slice(k, 1, 0, 1));
              return concat(same, 1);
            }});
  caught_by("batch", "the_first_values_for_all", {.value = [](const Var& v, const Pass&) {
              const std::vector<Var> same(static_cast<size_t>(v.dim(0)), slice(v, 0, 0, 1));
              return concat(same, 0);
            }});

  // Gradients
  caught_by("gradients", "gradient_of_queries", {.query = gradient(1.3)});
  caught_by("gradients", "gradient_of_queries_under_padding",
            {.query = only_if([](const Pass& p) { return p.padded(); }, gradient(1.3))});
  caught_by("gradients", "gradient_of_queries_if_causal",
            {.query = only_if([](const Pass& p) { return p.mask.causal; }, gradient(1.3))});
  caught_by("gradients", "gradient_of_values_twice", {.value = gradient(2)});
  caught_by("gradients", "no_gradient_of_keys", {.key = gradient(0)});
  referenced("gradient_in_cross_attention", {.key = only_if(cross, gradient(1.1))});
  referenced("gradient_of_one_percent", {.value = gradient(1.01)});
  const auto from_large = [](const PlantedChange& change) {
    return [change](const Var& x, const Pass& p) {
      real top = 0;
      for (const real value : x.value().values()) top = std::max(top, std::abs(value));
      return top > 60 ? change(x, p) : x;
    };
  };
  caught_by("range", "nan_gradients_at_large_logits",
            {.logits = from_large(gradient(std::numeric_limits<double>::quiet_NaN()))});
  caught_by("range", "overflow_in_backward", {.logits = from_large(gradient(1e39))});

  // State between calls, recording, threads
  caught_by("recording", "other_output_when_recorded",
            {.output = only_if([](const Pass& p) { return p.recorded; }, times(1.001))});
  caught_by("recording", "changes_its_input", {.query = [](const Var& q, const Pass&) {
              for (real& value : q.value().values()) value *= real(1.5);
              return scale(q, 1 / 1.5);
            }});
  static std::atomic<int> calls = 0;
  caught_by("determinism", "random_at_two_threads",
            {.output =
                 [](const Var& out, const Pass&) {
                   return threads() == 2 && calls++ % 2 ? scale(out, 1 + 8 * double{kEpsilon})
                                                        : out;
                 }},
            kMasks, false);
  list.back().caught_by = "threads";
  caught_by("threads", "half_of_the_rows_at_two_threads",
            {.output =
                 [](const Var& out, const Pass& p) {
                   return scaled_rows(out, [&](Index, Index, Index i) {
                     return threads() > 1 && i == p.q_len / 2 ? 0.9 : 1;
                   });
                 }},
            kMasks, false);

  // Costs
  caught_by("flops", "bytes_ten_times_over",
            {.cost = [](Cost& cost, const AttentionShape&) { cost.bytes *= 10; }});
  caught_by("flops", "flops_a_tenth_over",
            {.cost = [](Cost& cost, const AttentionShape&) { cost.flops *= 1.1; }});
  caught_by("flops", "bytes_of_half_the_inputs", {.cost = [](Cost& cost, const AttentionShape& s) {
              cost.bytes = sizeof(real) * static_cast<double>(s.batch * s.heads * s.head_dim *
                                                              (s.q_len + s.kv_len));
            }});
  caught_by("memory", "peak_a_tenth_under",
            {.cost = [](Cost& cost, const AttentionShape&) { cost.peak_bytes *= 0.9; }});
  caught_by("memory", "a_vector_beside_the_pool", {.beside = [](Index q_len, Index kv_len) {
              return std::make_shared<std::vector<float>>(static_cast<size_t>(q_len * kv_len),
                                                          1.0F);
            }});
  caught_by("memory", "a_vector_of_each_thread", {.beside = [](Index q_len, Index kv_len) {
              auto each = std::make_shared<std::vector<std::vector<float>>>(2);
              parallel_for(2, 1, [&](Index begin, Index end) {
                for (Index thread = begin; thread < end; thread++)
                  (*each)[static_cast<size_t>(thread)].assign(
                      static_cast<size_t>(q_len * kv_len / 2), 1.0F);
              });
              return each;
            }});

  // Variants of the catalogue, changed
  VariantInfo window = find_variant("truncated");
  window.name = "window_one_short";
  window.make = [make = window.make](AttentionConfig config) {
    std::map<std::string, ParamValue> values = config.params.values();
    std::get<int64_t>(values.at("window"))--;
    config.params = Params::unchecked(values);
    return make(config);
  };
  list.push_back({window, "reference"});
  VariantInfo features = find_variant("linear");
  features.name = "other_features";
  features.make = make_as<OtherFeatures>;
  list.push_back({features, "reference"});
  for (const PlantedVariant& planted : planted_at_edges()) list.push_back(planted);
  for (const PlantedVariant& planted : planted_passes()) list.push_back(planted);
  for (const PlantedVariant& planted : planted_gates()) list.push_back(planted);
  return list;
}

}  // namespace attn
