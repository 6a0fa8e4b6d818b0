// What each source adds to the module attnbench._core.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "harness/check/result.h"
#include "harness/train/batches.h"

namespace attn_python {

void bind_passes(nanobind::module_& module);  // attention
void bind_checks(nanobind::module_& module);
void bind_tasks(nanobind::module_& module);
void bind_cells(nanobind::module_& module);  // of a sweep, for variants in Python

const char* word_of(attn_check::Outcome outcome);  // "passed"
// A batch as arrays by name, None where the task has none; they hold the batch.
nanobind::dict arrays_of(const std::shared_ptr<attn::Batch>& batch, const attn::Task& task);

}  // namespace attn_python
