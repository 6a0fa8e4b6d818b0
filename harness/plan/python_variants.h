// Variants written in Python, named python:FILE.py:NAME. The interpreter says what a file holds, in
// a process of its own, and cells of such a variant are run by `python -m attnbench._cell`, which
// answers as `attnbench cell` does. Costs one start of the interpreter a file.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cell/request.h"
#include "harness/process/process.h"
#include "harness/store/rows.h"
#include "variants/api/variant_info.h"

namespace attn {

inline constexpr std::string_view kPythonPrefix = "python:";
inline constexpr const char* kByPython = "python";  // Row::provided_by

struct PythonVariant {
  std::string name;             // in the catalogue and in rows: "python_cosine"
  std::string file, attribute;  // as they were named: "mine.py", "Cosine"
  std::string path;             // of the file, absolute
  std::string hash;             // of the file and the attribute
  std::string python, torch;    // versions, "3.12.3" and "2.6.0"
  std::string spec() const { return fmt::format("{}{}:{}", kPythonPrefix, file, attribute); }
};

// Of the ledger of its rows: "torch 2.6.0".
inline std::string kernel_of(const PythonVariant& variant) { return "torch " + variant.torch; }

// "python:FILE.py:NAME" is loaded, unless it was, and its name in the catalogue returned; any other
// name is returned as it is. Error where the interpreter, the package, torch or NAME is missing or
// the file fails; IoError where the file cannot be read.
std::string catalogued(const std::string& name);
// Loads all that "python:FILE.py" holds and that can be a variant; their names in the catalogue.
std::vector<std::string> load_python_file(const std::string& text);
// Loads those of `given` that name such a variant and returns the others.
std::vector<std::string> load_python_variants(const std::vector<std::string>& given);
// Null for a variant that is not written in Python.
const PythonVariant* python_variant(std::string_view name);
const std::deque<PythonVariant>& python_variants();

// The process that does `what` ("cell", "check" or "weights") for the variant, to which `input` is
// given.
ChildSpec python_child(const PythonVariant& variant, const std::string& what, std::string input,
                       double timeout_s = 0);
// The process that answers the request: `program cell`, or one of Python where the variant is.
ChildSpec cell_process(const std::string& program, const Request& request, double timeout_s);
// What such a process printed; Error with its own words where it failed.
Json answer_of_python(const PythonVariant& variant, const std::string& what, const Json& input);

// The entry of the catalogue from how the package describes a class or a function, without `make`.
VariantInfo python_info(const Json& described, const std::string& name);
// Also in the process of the package itself, which sets `make`.
void add_python_variant(PythonVariant variant, VariantInfo info);
// Of this build. The package refuses a program of other sources: it would measure something else.
std::string sources_of_build();

}  // namespace attn
