// What stands around an attention in a table, or is left out: projections of gates, copies of
// shared keys and values, and how much of the time of a layer or model attention is.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cell/row.h"

namespace attn {

inline ScopeKind scope_of(const Row& row) {
  return row.key.axes.scope.value_or(ScopeKind::attention);
}

// Behind the label of a variant that reads gates, where attention alone was measured.
inline constexpr std::string_view kGatesSign = "§";
bool leaves_out_gates(const Row& row);

// Of the rows of one table of speed or memory: what kGatesSign means, and where `all` hold layers
// of the same shape, these variants' time in a layer beside that of exact attention; that a pass
// copies shared keys. Of times of layers and models: the share of attention, where `all` hold
// attention alone at the same shape. `label` names a row as the table does; * stands behind figures
// of disturbed times.
std::vector<std::string> scope_notes(const std::vector<const Row*>& rows,
                                     const std::vector<Row>& all,
                                     const std::function<std::string(const Row&)>& label);

}  // namespace attn
