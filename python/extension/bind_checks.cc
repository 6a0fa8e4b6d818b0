// The contract checks for a Python function: the library calls the function, and what it returned
// for gradients. The interpreter lock is held throughout, since the function needs it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>

#include "core/base/check.h"
#include "core/base/one_line.h"
#include "harness/check/contract.h"
#include "python/extension/bindings.h"
#include "python/extension/called.h"
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
    const std::string type = nb::cast<std::string>(error.type().attr("__name__"));
    throw Refused(attn::in_one_line(type + ": " + nb::str(error.value()).c_str()));
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

Promises promises_of(const nb::dict& given) {
  const auto is = [&](const char* name) { return nb::cast<bool>(given[name]); };
  const auto reads = [&](const char* name) { return !given.contains(name) || is(name); };
  return {.name = nb::cast<std::string>(given["name"]),
          .exact = is("exact"),
          .causal = is("causal"),
          .cross = is("cross"),
          .padding = is("padding"),
          .convex = is("convex"),
          .permutable = is("permutable"),
          .rowwise = is("rowwise"),
          .random = is("random"),
          .fixed_length = is("fixed_length"),
          .reads_queries = reads("reads_queries"),
          .reads_keys = reads("reads_keys"),
          .multiple_of = nb::cast<int64_t>(given["multiple_of"])};
}

const char* word_of(attn_check::Outcome outcome) {
  switch (outcome) {
    case attn_check::Outcome::passed:
      return "passed";
    case attn_check::Outcome::failed:
      return "failed";
    case attn_check::Outcome::skipped:
      return "skipped";
  }
  return "";
}

attn_check::Outcome outcome_of(const std::string& word) {
  using enum attn_check::Outcome;
  for (const attn_check::Outcome outcome : {passed, failed, skipped})
    if (word == word_of(outcome)) return outcome;
  attn::throw_error(fmt::format("unknown outcome '{}'", word));
}

// make(heads, head_dim, max_len, causal, seed, in_double) -> what PythonCallee takes.
// -> (subject, check, outcome, detail)
nb::tuple one_check(const nb::dict& given, const nb::object& make, const std::string& name,
                    bool full, bool in_double) {
  bool interrupted = false;
  const MakeCallee made = [&](const Made& of) -> std::shared_ptr<Callee> {
    return calling(interrupted, [&] {
      return std::make_shared<PythonCallee>(
          make(of.heads, of.head_dim, of.max_len, of.causal, of.seed, of.in_double), of.in_double,
          interrupted);
    });
  };
  const auto level = full ? attn_check::Level::full : attn_check::Level::quick;
  const attn_check::Result result =
      (in_double ? check_in_double : check_in_float)(promises_of(given), made, level, name);
  if (interrupted) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
    throw nb::python_error();
  }
  return nb::make_tuple(result.subject, result.name, word_of(result.outcome), result.detail);
}

}  // namespace

void bind_checks(nb::module_& module) {
  module.def("checks_of", [](const nb::dict& given) { return checks_of(promises_of(given)); });
  module.def("double_checks_of",
             [](const nb::dict& given) { return double_checks_of(promises_of(given)); });
  module.def("check", one_check, nb::arg("promises"), nb::arg("make"), nb::arg("name"),
             nb::arg("full"), nb::arg("in_double"));
  module.def(
      "report_line",
      [](const std::string& subject, const std::string& name, const std::string& outcome,
         const std::string& detail, bool color) {
        return attn::report_line({subject, name, outcome_of(outcome), detail}, color);
      },
      nb::arg("subject"), nb::arg("name"), nb::arg("outcome"), nb::arg("detail"), nb::arg("color"));
}

}  // namespace attn_python
