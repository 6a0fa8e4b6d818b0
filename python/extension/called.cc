// See called.h. Compiled in float and in double, as ATTN_DOUBLE says.
#include "python/extension/called.h"

#include <optional>
#include <span>
#include <utility>

#include "core/autograd/tape.h"
#include "harness/check/contract.h"
#include "python/extension/maker.h"
#include "python/extension/tensors.h"
#include "variants/api/on_calling_thread.h"

namespace attn_python {
namespace ATTN_PRECISION {
namespace {

class Called final : public attn::Attention, public attn::OnCallingThread {
 public:
  Called(const attn::AttentionConfig& config, std::shared_ptr<Callee> callee)
      : Attention(config), callee_(std::move(callee)) {
    for (const NamedArray& made : callee_->weights())
      values_.push_back(weight(made.name, tensor_over(made.array).clone(), made.learned));
  }

 private:
  attn::Var do_forward(const attn::Var& q, const attn::Var& k, const attn::Var& v,
                       const attn::Mask& mask) const override {
    std::vector<attn::Var> inputs = {q, k, v};
    inputs.insert(inputs.end(), values_.begin(), values_.end());
    CallInputs call{.q = array_over(q.value()),
                    .k = array_over(k.value()),
                    .v = array_over(v.value()),
                    .causal = mask.causal,
                    .kv_lengths = mask.kv_lengths,
                    .weights = {},
                    .gradients = attn::recording(std::span<const attn::Var>(inputs))};
    for (const attn::Var& value : values_) call.weights.push_back(array_over(value.value()));
    CallOutput called = callee_->call(call);
    ATTN_CHECK(called.output.shape == call.q.shape, "the function returned {}, expected {}",
               shape_of(called.output.shape).str(), q.shape().str());
    const attn::Tensor output = tensor_over(called.output).clone();
    if (!call.gradients || !called.backward) return attn::Var(output);
    return attn::record_op(
        output, inputs,
        [backward = std::move(called.backward)](const attn::Tensor& gradient,
                                                std::span<attn::GradSlot> slots) {
          const std::vector<Array> gradients = backward(array_over(gradient));
          for (size_t i = 0; i < slots.size(); i++) {
            if (!slots[i].needed() || i >= gradients.size() || !gradients[i].given()) continue;
            const attn::Tensor given = tensor_over(gradients[i]);
            ATTN_CHECK(given.shape() == slots[i].shape(),
                       "the function's gradient of input {} is {}, the input {}", i,
                       given.shape().str(), slots[i].shape().str());
            slots[i].give(given.clone());
          }
        });
  }

  const std::shared_ptr<Callee> callee_;
  std::vector<attn::Var> values_;
};

Made made_of(const attn::AttentionConfig& config) {
  return {.heads = config.heads,
          .head_dim = config.head_dim,
          .max_len = config.max_len,
          .causal = config.causal,
          .seed = config.seed,
          .in_double = attn::kIsDouble,
          .params = config.params.values()};
}

std::unique_ptr<attn::Attention> attention_of(const attn::AttentionConfig& config,
                                              const MakeCallee& make) {
  return std::make_unique<Called>(config, make(made_of(config)));
}

attn::VariantInfo info_of(const Promises& promises, const MakeCallee& make) {
  attn::VariantInfo info{.name = promises.name,
                         .family = "",
                         .summary = "a function",
                         .paper = "",
                         .cost_formula = "",
                         .traits = {.exact = promises.exact,
                                    .causal = promises.causal,
                                    .cross = promises.cross,
                                    .padding = promises.padding,
                                    .linear_memory = false,
                                    .random = promises.random,
                                    .fixed_length = promises.fixed_length,
                                    .convex = promises.convex,
                                    .permutable = promises.permutable,
                                    .rowwise = promises.rowwise},
                         .params = {}};
  info.reads = [queries = promises.reads_queries, keys = promises.reads_keys](const attn::Params&) {
    return attn::VariantInfo::Reads{.queries = queries, .keys = keys};
  };
  info.make = [make](const attn::AttentionConfig& config) { return attention_of(config, make); };
  info.skip_reason = [step = promises.multiple_of](
                         const attn::AttentionShape& shape,
                         const attn::Params&) -> std::optional<std::string> {
    if (shape.q_len % step == 0 && shape.kv_len % step == 0) return std::nullopt;
    return fmt::format("takes lengths that are multiples of {} alone", step);
  };
  return info;
}

attn_check::Result result_of(const Promises& promises, const MakeCallee& make,
                             attn_check::Level level, const std::string& name) {
  return translated([&] {
    const attn::VariantInfo info = info_of(promises, make);
    const std::vector<attn_check::Result> results = attn::check_variant(info, {}, level, name);
    return results.empty() ? attn_check::Result{promises.name, name, attn_check::Outcome::skipped,
                                                "not one of the quick checks"}
                           : results.front();
  });
}

}  // namespace
}  // namespace ATTN_PRECISION

#ifdef ATTN_DOUBLE
attn_check::Result check_in_double(const Promises& promises, const MakeCallee& make,
                                   attn_check::Level level, const std::string& name) {
  attn_check::Result result = in_double::result_of(promises, make, level, name);
  result.name += " (double)";
  return result;
}
#else
attn_check::Result check_in_float(const Promises& promises, const MakeCallee& make,
                                  attn_check::Level level, const std::string& name) {
  return in_float::result_of(promises, make, level, name);
}

MakeAttention maker_of(const MakeCallee& make) {
  return
      [make](const attn::AttentionConfig& config) { return in_float::attention_of(config, make); };
}

std::vector<std::string> checks_of(const Promises& promises) {
  return attn::variant_check_names(in_float::info_of(promises, {}));
}

std::vector<std::string> double_checks_of(const Promises& promises) {
  return attn::double_check_names(in_float::info_of(promises, {}));
}
#endif

}  // namespace attn_python
