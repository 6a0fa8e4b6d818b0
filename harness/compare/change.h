// A change between two measurements, as a test sees it, and what may be said of it.
#pragma once

#include <array>
#include <optional>

#include "core/base/enum_names.h"

namespace attn {

enum class Judgement { worse, better, same, undecided };

constexpr std::array<EnumName<Judgement>, 4> names_of(Judgement) {
  return {{{Judgement::worse, "worse"},
           {Judgement::better, "better"},
           {Judgement::same, "same"},
           {Judgement::undecided, "undecided"}}};
}

// `value` above 0 is worse. Its error follows Student's t of so many degrees of freedom; infinite:
// a normal distribution.
struct Change {
  double value = 0, error = 0, degrees = 0;
};

// Half of the interval that holds the true change in a share `level` of all cases.
double reach(const Change& change, double level = 0.95);

// The probability of a change at least as far beyond the band [-margin, margin] where the true
// change is in the band; 1 inside the band.
double probability_within(const Change& change, double margin);

// worse or better: `corrected` (see holm()) is at most 5 %, so that the change is beyond the band.
// same: the 95 % interval lies in the band.
Judgement verdict_of(const Change& change, double margin, double corrected);

}  // namespace attn
