// What each source adds to the module attnbench._core.
#pragma once

#include <nanobind/nanobind.h>

namespace attn_python {

void bind_passes(nanobind::module_& module);  // attention
void bind_checks(nanobind::module_& module);
void bind_tasks(nanobind::module_& module);

}  // namespace attn_python
