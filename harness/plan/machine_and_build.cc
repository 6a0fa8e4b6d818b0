// See machine_and_build.h.
#include "harness/plan/machine_and_build.h"

#include <fmt/format.h>

#include "core/base/parallel.h"
#include "core/simd/isa.h"
#include "harness/measure/environment.h"

namespace attn {

const std::string& machine_and_build() {
  static const std::string found = [] {
    std::string all = fmt::format("{} threads, {}", hardware_threads(), isa());
    for (const EnvironmentField& field : environment())
      if (field.name == "cpu_model" || field.name == "compiler" || field.name == "flags")
        all += ", " + field.value;
    return all;
  }();
  return found;
}

}  // namespace attn
