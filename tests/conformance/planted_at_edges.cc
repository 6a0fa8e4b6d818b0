// Faults at sizes beyond the usual ones, after other calls, and in weights and requests for
// gradients; see planted.h.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "tests/conformance/planted_softmax.h"
#include "tests/conformance/planted.h"

namespace attn {
namespace {

const Traits kMasked{.causal = true, .cross = true, .linear_memory = false};
constexpr real kNaN = std::numeric_limits<real>::quiet_NaN();

// x with values of the caller's making and the gradient of x.
Var with_values(const Var& x, const Tensor& values) {
  return custom_op(values, {x}, [](const Tensor& grad, std::span<Tensor> grads) {
    if (grads[0].defined()) grads[0].add(grad);
  });
}

// matmul(q, kᵀ) whose backward asks neither which gradients are wanted nor what is there already.
Var products(const Var& q, const Var& k, bool overwrites) {
  const Tensor queries = q.value(), keys = k.value();
  return custom_op(matmul(Var(queries), Var(keys), false, true).value(), {q, k},
                   [queries, keys, overwrites](const Tensor& grad, std::span<Tensor> grads) {
                     const Tensor of_q = matmul(Var(grad), Var(keys)).value();
                     const Tensor of_k = matmul(Var(grad), Var(queries), true, false).value();
                     if (!overwrites) {
                       grads[0].add(of_q);
                       grads[1].add(of_k);
                       return;
                     }
                     if (grads[0].defined()) std::copy_n(of_q.data(), of_q.size(), grads[0].data());
                     if (grads[1].defined()) std::copy_n(of_k.data(), of_k.size(), grads[1].data());
                   });
}

}  // namespace

std::vector<PlantedVariant> planted_at_edges() {
  std::vector<PlantedVariant> list;
  const auto referenced = [&](const std::string& name, const Faults& faults, bool at_quick = true) {
    list.push_back({softmax_with(name, faults, kMasked, true), "reference", at_quick});
  };
  const auto caught_by = [&](const std::string& check, const std::string& name,
                             const Faults& faults, bool at_quick = true) {
    list.push_back({softmax_with(name, faults, kMasked, false), check, at_quick});
  };
  const auto sees = [](auto rule) {
    Faults faults;
    faults.sees = rule;
    return faults;
  };
  const auto rows = [](auto factor) {  // (pass, batch entry, head, query)
    return [factor](const Var& out, const Pass& p) {
      return scaled_rows(
          out, [&](int64_t b, int64_t h, int64_t i) -> double { return factor(p, b, h, i); });
    };
  };
  using Index = int64_t;

  // Sizes
  caught_by(
      "batch", "third_batch_entry",
      {.output = rows([](const Pass&, Index b, Index, Index) { return b == 2 ? 0.9 : 1.0; })});
  caught_by("heads", "sixth_head_mixes", {.query = [](const Var& q, const Pass&) {
              if (q.dim(1) < 6) return q;
              const std::vector<Var> parts = {slice(q, 1, 0, 5),
                                              add(slice(q, 1, 5, 6), slice(q, 1, 0, 1))};
              const std::vector<Var> all = {concat(parts, 1), slice(q, 1, 6, q.dim(1))};
              return q.dim(1) == 6 ? concat(parts, 1) : concat(all, 1);
            }});
  caught_by(
      "channels", "first_96_channels", {.value = [](const Var& v, const Pass&) {
        if (v.dim(3) <= 96) return v;
        const std::vector<Var> parts = {slice(v, 3, 0, 96), scale(slice(v, 3, 96, v.dim(3)), 0)};
        return concat(parts, 3);
      }});
  referenced("one_channel", {.logits = [](const Var& x, const Pass& p) {
               return p.heads == 7 ? scale(x, 1.1) : x;  // where head_dim is 1
             }});
  referenced("last_tile_lost_beyond_600",
             sees([](const Pass& p, Index, Index, Index, Index j, bool seen) {
               return seen && (p.kv_len < 600 || j < p.kv_len / 64 * 64);
             }));
  referenced(
      "gradient_beyond_500",
      {.key =
           [](const Var& k, const Pass& p) {
             return p.kv_len < 500 ? k : with_gradient(k, [](double slope) { return 1.5 * slope; });
           }},
      false);
  caught_by("causality", "last_key_lost_at_even_lengths",
            sees([](const Pass& p, Index, Index, Index, Index j, bool seen) {
              return seen && (p.kv_len % 2 == 1 || j < p.kv_len - 1);
            }));

  // Values and masks
  caught_by("linearity", "clips_values_at_eight", {.value = [](const Var& v, const Pass&) {
              const Tensor clipped = v.value().clone();
              for (real& value : clipped.values()) value = std::clamp(value, real(-8), real(8));
              return with_values(v, clipped);
            }});
  referenced("one_of_the_equal_keys", {.logits = [](const Var& x, const Pass&) {
               Tensor first = Tensor::zeros(x.shape());
               for (int64_t row = 0; row < first.size(); row += x.dim(3)) {
                 const auto logits = x.value().values().begin() + row;
                 const auto [least, most] = std::minmax_element(logits, logits + x.dim(3));
                 if (*most - *least < 1e-4) first[row] = 9;
               }
               return add(x, Var(first));
             }});
  referenced("soft_cap", {.logits = [](const Var& x, const Pass&) {
               return scale(tanh(scale(x, 1 / 30.0)), 30);
             }});
  referenced("zeros_past_padding", {.output = rows([](const Pass& p, Index b, Index, Index i) {
                                      return !p.cross() && i >= p.valid(b) ? 0.0 : 1.0;
                                    })});
  referenced("causal_forgets_padding",
             sees([](const Pass& p, Index, Index, Index i, Index j, bool seen) {
               return p.mask.causal ? j <= p.position(i) : seen;
             }));
  caught_by("empty_rows", "nan_where_the_last_entry_is_empty",
            {.output = rows([](const Pass& p, Index b, Index, Index) {
               return b > 0 && p.valid(b) == 0 ? static_cast<double>(kNaN) : 1.0;
             })});

  // Earlier calls, and memory
  caught_by("calls", "length_of_the_first_call",
            sees([](const Pass& p, Index, Index, Index, Index j, bool seen) {
              if (p.kept.number == 0) p.kept.number = p.kv_len;
              return seen && j < p.kept.number;
            }));
  caught_by("calls", "keys_of_the_first_call", {.key = [](const Var& k, const Pass& p) {
              for (const Tensor& earlier : p.kept.tensors)
                if (earlier.shape() == k.shape()) return with_values(k, earlier);
              p.kept.tensors.push_back(k.value().clone());
              return k;
            }});
  caught_by("calls", "colder_after_two_calls", {.logits = [](const Var& x, const Pass& p) {
              return p.kept.number++ < 2 ? x : scale(x, 1.01);
            }});
  caught_by("calls", "keeps_every_output", {.output = [](const Var& out, const Pass& p) {
              p.kept.tensors.push_back(out.value().clone());
              return out;
            }});
  caught_by("calls", "last_row_is_not_written", {.output = [](const Var& out, const Pass& p) {
              const Tensor rows_but_one(out.shape());
              for (int64_t at = 0; at < out.value().size(); at++)
                if (at / out.dim(3) % p.q_len != p.q_len - 1 || p.q_len < 7)
                  rows_but_one[at] = out.value()[at];
              return with_values(out, rows_but_one);
            }});

  // Weights, gradients, threads
  caught_by("weights", "draws_in_secret", {.secret = true});
  caught_by("weights", "weights_that_drift", {.gains = true, .gains_drift = true});
  caught_by("weights", "two_weights_of_one_name", {.gains = true, .gains_twice = true});
  caught_by("recording", "needs_every_gradient",
            {.scores = [](const Var& q, const Var& k) { return products(q, k, false); }});
  list.back().throws = true;
  caught_by("recording", "overwrites_gradients",
            {.scores = [](const Var& q, const Var& k) { return products(q, k, true); }});
  caught_by("threads", "a_row_at_five_threads",
            {.output = rows([](const Pass& p, Index, Index, Index i) {
               return threads() == 5 && i == p.q_len / 2 ? 0.9 : 1.0;
             })},
            false);
  return list;
}

}  // namespace attn
