// See sequence_alone.h.
#include "harness/measure/sequence_alone.h"

#include <utility>

#include "core/autograd/grad_or_zeros.h"
#include "variants/api/packed_forward.h"

namespace attn {
namespace {

class SequenceAlone final : public GradientPass {
 public:
  SequenceAlone(WorkloadSpec spec, const Attention& attention, const std::vector<Tensor>& inputs,
                std::vector<std::string> names, Tensor seed)
      : spec_(std::move(spec)),
        attention_(attention),
        names_(std::move(names)),
        seed_(std::move(seed)) {
    for (const Tensor& x : inputs) inputs_.emplace_back(x.clone(), true);
    run_again(seed_);
  }

  const WorkloadSpec& spec() const override { return spec_; }
  const Tensor& output_gradient() const override { return seed_; }
  void run_again(const Tensor& output_gradient) override {
    for (const Var& input : inputs_) input.zero_grad();
    for (const Weight& weight : attention_.weights()) weight.value.zero_grad();
    if (const Var out = forward_of(attention_, inputs_, {spec_.causal, {}}); out.requires_grad())
      out.backward(output_gradient);
  }
  std::vector<LeafGradient> gradients() const override {
    std::vector<LeafGradient> all;
    const auto add = [&](const std::string& name, const Var& leaf) {
      all.push_back({name, leaf.value(), grad_or_zeros(leaf)});
    };
    for (size_t i = 0; i < inputs_.size(); ++i) add(names_[i], inputs_[i]);
    for (const Weight& weight : attention_.weights())
      if (weight.learned) add(weight.name, weight.value);
    return all;
  }

 private:
  const WorkloadSpec spec_;
  const Attention& attention_;
  const std::vector<std::string> names_;
  std::vector<Var> inputs_;
  const Tensor seed_;
};

}  // namespace

std::unique_ptr<GradientPass> sequence_alone(WorkloadSpec spec, const Attention& attention,
                                             const std::vector<Tensor>& inputs,
                                             std::vector<std::string> names, Tensor seed) {
  return std::make_unique<SequenceAlone>(std::move(spec), attention, inputs, std::move(names),
                                         std::move(seed));
}

}  // namespace attn
