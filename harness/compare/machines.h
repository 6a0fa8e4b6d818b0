// Whether two rows files come from one machine and from one build, by their run lines.
#pragma once

#include <optional>
#include <string>

#include "harness/cell/row.h"

namespace attn {

// "cpu_model: \"A\" and \"B\"": the first fact in which the machines, or the settings of the
// builds, differ; "" where they do not. The commit is no setting of a build: that is what is
// compared.
std::string machine_difference(const RunLine& before, const RunLine& after);
std::string build_difference(const RunLine& before, const RunLine& after);
// The first difference of either kind.
std::string origin_difference(const RunLine& before, const RunLine& after);

// The measured peak of one thread in `after` over that in `before`; nullopt where one has none.
std::optional<double> peak_ratio(const RunLine& before, const RunLine& after);

}  // namespace attn
