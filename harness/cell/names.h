// The words of a cell and of its row that come from a fixed list.
#pragma once

#include <array>

#include "core/base/enum_names.h"
#include "harness/measure/equal.h"
#include "harness/measure/fidelity.h"
#include "harness/measure/verified.h"
#include "harness/measure/workload.h"

namespace attn {

enum class Measure { speed, memory, accuracy, fidelity, reach };
enum class Status { ok, skipped, failed, diverged, timeout, oom };
// Where a variant's FLOPs, memory and bytes moved come from: its own formulas, or the counters.
enum class CostSource { declared, measured };
// In bfloat16: whether the variant reads it itself, or widens it to float32 first.
enum class DtypePath { native, converted };
// Why a speed cell was not visited again: all rounds were done, the interval was as narrow as
// asked, the time of the cell was up, or the most visits that a cell gets were done.
enum class VisitsEnd { rounds, precision, max_time, max_visits };
// Why the times of a row are unreliable; harness/run/noisy.h has the rules.
enum class Noise { stopped, witness, steal, switches };

// In the order in which a sweep measures.
inline constexpr std::array kMeasures = {Measure::speed, Measure::memory, Measure::accuracy,
                                         Measure::fidelity, Measure::reach};

// Whether a cell of this measure has the machine to itself, because another process would change
// its figures. Cells of the others run one on each core.
constexpr bool runs_alone(Measure measure) {
  switch (measure) {
    case Measure::speed:
    case Measure::memory:
      return true;
    case Measure::accuracy:
    case Measure::fidelity:
    case Measure::reach:
      return false;
  }
  return true;
}

constexpr std::array<EnumName<Measure>, 5> names_of(Measure) {
  return {{{Measure::speed, "speed"},
           {Measure::memory, "memory"},
           {Measure::accuracy, "accuracy"},
           {Measure::fidelity, "fidelity"},
           {Measure::reach, "reach"}}};
}

constexpr std::array<EnumName<Status>, 6> names_of(Status) {
  return {{{Status::ok, "ok"},
           {Status::skipped, "skipped"},
           {Status::failed, "failed"},
           {Status::diverged, "diverged"},
           {Status::timeout, "timeout"},
           {Status::oom, "oom"}}};
}

constexpr std::array<EnumName<CostSource>, 2> names_of(CostSource) {
  return {{{CostSource::declared, "declared"}, {CostSource::measured, "measured"}}};
}

constexpr std::array<EnumName<DtypePath>, 2> names_of(DtypePath) {
  return {{{DtypePath::native, "native"}, {DtypePath::converted, "converted"}}};
}

constexpr std::array<EnumName<VerifiedBy>, 3> names_of(VerifiedBy) {
  return {{{VerifiedBy::reference, "reference"},
           {VerifiedBy::pieces, "pieces"},
           {VerifiedBy::identities, "identities"}}};
}

constexpr std::array<EnumName<VisitsEnd>, 4> names_of(VisitsEnd) {
  return {{{VisitsEnd::rounds, "rounds"},
           {VisitsEnd::precision, "precision"},
           {VisitsEnd::max_time, "max_time"},
           {VisitsEnd::max_visits, "max_visits"}}};
}

constexpr std::array<EnumName<Noise>, 4> names_of(Noise) {
  return {{{Noise::stopped, "stopped"},
           {Noise::witness, "witness"},
           {Noise::steal, "steal"},
           {Noise::switches, "switches"}}};
}

constexpr std::array<EnumName<Mode>, 4> names_of(Mode) {
  return {{{Mode::forward, "forward"},
           {Mode::train, "train"},
           {Mode::decode, "decode"},
           {Mode::serve, "serve"}}};
}

constexpr std::array<EnumName<ScopeKind>, 3> names_of(ScopeKind) {
  return {{{ScopeKind::attention, "attention"},
           {ScopeKind::layer, "layer"},
           {ScopeKind::model, "model"}}};
}

constexpr std::array<EnumName<Equal>, 3> names_of(Equal) {
  return {{{Equal::width, "width"}, {Equal::parameters, "parameters"}, {Equal::flops, "flops"}}};
}

constexpr std::array<EnumName<InputKind>, 4> names_of(InputKind) {
  return {{{InputKind::random, "random"},
           {InputKind::needle, "needle"},
           {InputKind::initial, "initial"},
           {InputKind::trained, "trained"}}};
}

// How a cell that is not in float32 was computed.
struct StoredDtype {
  Dtype name = Dtype::bfloat16;
  DtypePath path = DtypePath::native;
};

}  // namespace attn
