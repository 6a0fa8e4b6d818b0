// Whether the order of variants on one task is their order on another: Kendall's tau of accuracy
// rows. The other task is scored in bits a token, such as `lm` on real text: what short tasks are
// made to predict. As the section "Does it carry over?" of the report has it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/cell/row.h"
#include "harness/compare/kendall.h"

namespace attn {

inline constexpr int64_t kLeastOrdered = 8;  // variants; the interval of fewer says nothing

struct Agreement {
  std::string task, with_task;          // `with_task` is scored in bits
  int64_t variants = 0;                 // that both have
  std::optional<double> tau;            // of better scores; nullopt: see `reason`
  std::optional<TauInterval> interval;  // nullopt: of fewer than kLeastOrdered
  std::string reason;                   // why there is no tau
};

struct Agreements {
  std::vector<Agreement> pairs;       // of tasks, in the order of the rows
  std::vector<std::string> left_out;  // a line for each setting that was not learned, and one of
                                      // all trainings that were cut off
  bool empty() const { return pairs.empty() && left_out.empty(); }
};

// Of the choices made on validation, means over seeds. Settings that their control has not learned
// and scores of trainings that were cut off count nowhere. Of a cell that the rows hold twice the
// later one counts. Empty where no task is scored in bits, or no other task is there.
Agreements agreements_of(const std::vector<Row>& rows);

}  // namespace attn
