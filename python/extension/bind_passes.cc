// attention() for Python: arrays in, a pass and its gradients out. The interpreter lock is released
// while the library computes.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>

#include "harness/cli/specs.h"
#include "python/extension/bindings.h"
#include "python/extension/numpy_arrays.h"
#include "python/extension/pass.h"

namespace nb = nanobind;

namespace attn_python {
namespace {

class BoundPass {
 public:
  BoundPass(const PassRequest& request, const std::string& dtype)
      : in_double_(dtype == "float64"), of_bits_(dtype == "bfloat16") {
    const nb::gil_scoped_release unlocked;
    pass_ = (of_bits_ ? pass_in_bfloat16 : in_double_ ? pass_in_double : pass_in_float)(request);
  }

  nb::object output() const {
    const Array output = pass_->output();
    return of_bits_ ? numpy_over_bits(output) : numpy_over(output, in_double_);
  }

  // (of q, of k, of v, {name: of a weight})
  nb::tuple backward(nb::handle grad_output) {
    const Array given = array_of(grad_output);
    PassGradients found;
    {
      const nb::gil_scoped_release unlocked;
      found = pass_->backward(given);
    }
    nb::dict weights;
    for (const auto& [name, array] : found.weights)
      weights[name.c_str()] = numpy_over(array, in_double_);
    return nb::make_tuple(numpy_over(found.q, in_double_), numpy_over(found.k, in_double_),
                          numpy_over(found.v, in_double_), weights);
  }

 private:
  const bool in_double_, of_bits_;
  std::unique_ptr<Pass> pass_;
};

std::unique_ptr<BoundPass> forward(const std::string& spec, nb::handle q, nb::handle k,
                                   nb::handle v, bool causal, std::vector<int64_t> kv_lengths,
                                   const nb::dict& weights, uint64_t seed, int threads,
                                   bool gradients, const std::string& dtype) {
  const attn::cli::Chosen chosen = attn::cli::choose_variant(spec);
  PassRequest request{.variant = chosen.variant->name,
                      .params = chosen.params,
                      .q = array_of(q),
                      .k = array_of(k),
                      .v = array_of(v),
                      .causal = causal,
                      .kv_lengths = std::move(kv_lengths),
                      .weights = {},
                      .seed = seed,
                      .threads = threads,
                      .gradients = gradients};
  for (const auto& [name, array] : weights)
    request.weights[nb::cast<std::string>(name)] = array_of(array);
  return std::make_unique<BoundPass>(request, dtype);
}

// {name: (values, whether it is learned)}
nb::dict weights(const std::string& spec, int64_t heads, int64_t head_dim, int64_t max_len,
                 bool causal, uint64_t seed) {
  const attn::cli::Chosen chosen = attn::cli::choose_variant(spec);
  nb::dict result;
  for (const NamedArray& weight :
       initial_weights(chosen.variant->name, chosen.params, heads, head_dim, max_len, causal, seed))
    result[weight.name.c_str()] = nb::make_tuple(numpy_over(weight.array, false), weight.learned);
  return result;
}

}  // namespace

void bind_passes(nb::module_& module) {
  nb::class_<BoundPass>(module, "Pass")
      .def("output", &BoundPass::output)
      .def("backward", &BoundPass::backward, nb::arg("grad_output"));
  module.def("forward", forward, nb::arg("spec"), nb::arg("q"), nb::arg("k"), nb::arg("v"),
             nb::arg("causal"), nb::arg("kv_lengths"), nb::arg("weights"), nb::arg("seed"),
             nb::arg("threads"), nb::arg("gradients"), nb::arg("dtype"));
  module.def("weights", weights, nb::arg("spec"), nb::arg("heads"), nb::arg("head_dim"),
             nb::arg("max_len"), nb::arg("causal"), nb::arg("seed"));
}

}  // namespace attn_python
