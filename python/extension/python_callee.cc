// See python_callee.h.
#include "python/extension/python_callee.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>

#include "core/base/memory.h"
#include "core/base/one_line.h"
#include "python/extension/numpy_arrays.h"

namespace nb = nanobind;

namespace attn_python {
namespace {

// An exception of Python as one line. Ctrl-C is remembered: a check takes every exception for a
// fault of the function.
template <class Body>
auto calling(bool& interrupted, const Body& body) {
  try {
    return body();
  } catch (nb::python_error& error) {
    interrupted = interrupted || error.matches(PyExc_KeyboardInterrupt);
    const std::string type = nb::cast<std::string>(error.type().attr("__name__")),
                      text = attn::in_one_line(type + ": " + nb::str(error.value()).c_str());
    // torch says so of its allocator for the processor in a RuntimeError.
    if (error.matches(PyExc_MemoryError) || text.find("can't allocate memory") != std::string::npos)
      throw attn::OutOfMemory(text);
    throw Refused(text);
  } catch (const nb::cast_error&) {
    throw Refused("the function returned no C-contiguous array of numbers");
  }
}

nb::object numpy_or_none(const std::vector<int64_t>& lengths) {
  if (lengths.empty()) return nb::none();
  nb::list list;
  for (const int64_t length : lengths) list.append(length);
  return list;
}

// `object` has weights() -> [(name, array, learned)] and call(q, k, v, causal, kv_lengths, weights,
// gradients) -> (output, backward or None), where backward(grad_output) -> [array or None].
class PythonCallee final : public Callee {
 public:
  PythonCallee(nb::object object, bool in_double, bool& interrupted)
      : object_(std::move(object)), in_double_(in_double), interrupted_(interrupted) {}

  std::vector<NamedArray> weights() const override {
    return calling(interrupted_, [&] {
      std::vector<NamedArray> result;
      for (const nb::handle weight : object_.attr("weights")())
        result.push_back({nb::cast<std::string>(weight[0]), array_of(nb::object(weight[1])),
                          nb::cast<bool>(weight[2])});
      return result;
    });
  }

  CallOutput call(const CallInputs& inputs) const override {
    return calling(interrupted_, [&] {
      nb::list values;
      for (const Array& value : inputs.weights) values.append(numpy_over(value, in_double_));
      const nb::object answer =
          object_.attr("call")(numpy_over(inputs.q, in_double_), numpy_over(inputs.k, in_double_),
                               numpy_over(inputs.v, in_double_), inputs.causal,
                               numpy_or_none(inputs.kv_lengths), values, inputs.gradients);
      CallOutput result{.output = array_of(nb::object(answer[0])), .backward = {}};
      const nb::object backward(answer[1]);
      if (!backward.is_none())
        result.backward = [backward, in_double = in_double_,
                           &interrupted = interrupted_](const Array& grad_output) {
          return calling(interrupted, [&] {
            std::vector<Array> gradients;
            for (const nb::handle one : backward(numpy_over(grad_output, in_double)))
              gradients.push_back(one.is_none() ? Array{} : array_of(one));
            return gradients;
          });
        };
      return result;
    });
  }

 private:
  const nb::object object_;
  const bool in_double_;
  bool& interrupted_;
};

nb::dict dict_of(const ParamValues& params) {
  nb::dict dict;
  for (const auto& [name, value] : params)
    std::visit([&](const auto& held) { dict[name.c_str()] = nb::cast(held); }, value);
  return dict;
}

}  // namespace

MakeCallee calls_to(nb::handle make, bool& interrupted) {
  return [make, &interrupted](const Made& of) -> std::shared_ptr<Callee> {
    return calling(interrupted, [&] {
      return std::make_shared<PythonCallee>(make(of.heads, of.head_dim, of.max_len, of.causal,
                                                 of.seed, of.in_double, dict_of(of.params)),
                                            of.in_double, interrupted);
    });
  };
}

}  // namespace attn_python
