// attnbench._core: the library for the Python package, which checks arguments before it calls this.
#include "core/base/check.h"
#include "core/base/parallel.h"
#include "harness/check/process_memory.h"
#include "harness/measure/statistics.h"
#include "python/extension/arrays.h"
#include "python/extension/bindings.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <optional>

namespace nb = nanobind;

namespace attn_python {
namespace {

nb::dict summary_of(const std::vector<double>& times) {
  const attn::Summary found = attn::summarize(times);
  nb::dict result;
  result["median"] = found.median;
  result["mean"] = found.mean;
  result["min"] = found.min;
  result["mad"] = found.mad;
  result["ci_low"] = found.ci_low;
  result["ci_high"] = found.ci_high;
  result["n"] = found.n;
  return result;
}

// By how many bytes the resident memory of this process grows in the call.
int64_t growth_in(const nb::object& call) {
  const std::optional<int64_t> growth = attn::resident_growth([&] { call(); });
  ATTN_CHECK(growth, "this system does not tell how much memory a process takes");
  return *growth;
}

}  // namespace

NB_MODULE(_core, module) {
  module.doc() = "The C++ library behind attnbench; use the package instead.";
  const nb::exception<Refused> refused(module, "Error", PyExc_ValueError);
  nb::register_exception_translator(
      [](const std::exception_ptr& thrown, void* type) {
        try {
          std::rethrow_exception(thrown);
        } catch (const NoMemory& error) {
          PyErr_SetString(PyExc_MemoryError, error.what());
        } catch (const attn::Error& error) {
          PyErr_SetString(static_cast<PyObject*>(type), error.what());
        }
      },
      refused.ptr());  // which the module keeps
  module.def("summary", summary_of, nb::arg("times"));
  module.def("resident_growth", growth_in, nb::arg("call"));
  module.attr("version") = ATTN_VERSION;
  module.def("cores", attn::hardware_threads);
  bind_passes(module);
  bind_checks(module);
  bind_tasks(module);
  bind_cells(module);
}

}  // namespace attn_python
