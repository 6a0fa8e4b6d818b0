// The contract checks for a Python function: the library calls the function, and what it returned
// for gradients. The interpreter lock is held throughout, since the function needs it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "core/base/check.h"
#include "harness/check/contract.h"
#include "python/extension/bindings.h"
#include "python/extension/python_callee.h"

namespace nb = nanobind;

namespace attn_python {
namespace {

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

attn_check::Outcome outcome_of(const std::string& word) {
  using enum attn_check::Outcome;
  for (const attn_check::Outcome outcome : {passed, failed, skipped})
    if (word == word_of(outcome)) return outcome;
  attn::throw_error(fmt::format("unknown outcome '{}'", word));
}

// `make` as calls_to() takes it.
// -> (subject, check, outcome, detail)
nb::tuple one_check(const nb::dict& given, const nb::object& make, const std::string& name,
                    bool full, bool in_double) {
  bool interrupted = false;
  const MakeCallee made = calls_to(make, interrupted);
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

void bind_checks(nb::module_& module) {
  module.def("checks_of", [](const nb::dict& given) { return checks_of(promises_of(given)); });
  module.def("double_checks_of",
             [](const nb::dict& given) { return double_checks_of(promises_of(given)); });
  module.def("check", one_check, nb::arg("promises"), nb::arg("make"), nb::arg("name"),
             nb::arg("full"), nb::arg("in_double"));
  module.def(
      "remarks_on",
      [](const std::vector<std::tuple<std::string, std::string, std::string, std::string>>& results,
         bool has_formula) {
        std::vector<attn_check::Result> given;
        for (const auto& [subject, name, outcome, detail] : results)
          given.push_back({subject, name, outcome_of(outcome), detail});
        return attn::remarks_on(given, has_formula);
      },
      nb::arg("results"), nb::arg("has_formula"));
  module.def(
      "report_line",
      [](const std::string& subject, const std::string& name, const std::string& outcome,
         const std::string& detail, bool color) {
        return attn::report_line({subject, name, outcome_of(outcome), detail}, color);
      },
      nb::arg("subject"), nb::arg("name"), nb::arg("outcome"), nb::arg("detail"), nb::arg("color"));
}

}  // namespace attn_python
