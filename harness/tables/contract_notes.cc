// What a table says of the functions that it sets beside each other; see grid.h.
#include <fmt/format.h>

#include "core/base/check.h"
#include "harness/plan/labels.h"
#include "harness/tables/grid.h"
#include "variants/catalog.h"

namespace attn {
namespace {

AttentionShape shape_of(const Axes& axes) {
  const int64_t length = axes.length.value();
  return {.batch = 1,
          .heads = axes.heads.value_or(1),
          .q_len = length,
          .kv_len = length,
          .head_dim = axes.head_dim.value_or(16),
          .causal = axes.causal.value_or(false)};
}

// The variant selects keys, and its reach is that of its limit or longer, so that it selects all. A
// limit that needs certain weights, or that is reached up to sampling, is no selection of keys.
bool sees_all(const VariantInfo& info, const Params& params, const AttentionShape& shape) {
  const VariantInfo::Reads read = info.read_by(params);
  if (!read.queries || !read.keys || info.traits.edges || !info.limit) return false;
  const auto limit = info.limit(shape);
  if (!limit || limit->prepare || limit->sampled) return false;
  return std::all_of(limit->params.begin(), limit->params.end(), [&](const auto& at) {
    const ParamValue& own = params.values().at(at.first);
    const auto* reach = std::get_if<int64_t>(&at.second);
    return reach ? std::get<int64_t>(own) >= *reach : own == at.second;
  });
}

}  // namespace

std::string joined(const std::set<std::string>& texts) {
  return fmt::to_string(fmt::join(texts, ", "));
}

std::vector<std::string> contract_notes(const std::vector<const Row*>& rows) {
  std::set<std::string> exact, other, unreferenced, remarks;
  std::map<std::string, std::set<int64_t>> complete;
  for (const Row* row : rows) {
    if (!row->is_ok()) continue;
    if (!row->referenced.value_or(true)) unreferenced.insert(marked_name(row->key.variant.name));
    const VariantInfo* const known = known_variant(row->key.variant);
    if (!known) continue;  // of a plug-in that is not loaded: its traits are unknown
    const VariantInfo& info = *known;
    (info.traits.exact ? exact : other).insert(marked_name(row->key.variant.name));
    const Params params(info.name, info.params, row->key.variant.params.values());
    const AttentionShape shape = shape_of(row->key.axes);
    if (!shape.causal && info.always_causal && info.always_causal(params))
      remarks.insert(label_of(*row) + " hides the future, though causal is false: less work");
    if (sees_all(info, params, shape)) complete[label_of(*row)].insert(shape.q_len);
  }
  std::vector<std::string> notes;
  if (!exact.empty() && !other.empty())
    notes.push_back(
        fmt::format("not one function: exact softmax attention is {}; {} {} something else",
                    joined(exact), joined(other), other.size() == 1 ? "computes" : "compute"));
  if (!unreferenced.empty())
    notes.push_back(
        fmt::format("unreferenced: {}: no reference is declared, so that nothing but the "
                    "general checks was compared",
                    joined(unreferenced)));
  for (const auto& [label, lengths] : complete)
    notes.push_back(fmt::format("{} sees every position at length {}: it is exact attention there",
                                label, fmt::join(lengths, ", ")));
  notes.insert(notes.end(), remarks.begin(), remarks.end());
  return notes;
}

}  // namespace attn
