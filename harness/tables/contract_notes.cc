// What a table says of the functions that it sets beside each other; see grid.h.
#include <fmt/format.h>

#include "core/base/check.h"
#include "harness/sweep/key.h"
#include "harness/tables/grid.h"
#include "variants/catalog.h"

namespace attn {
namespace {

AttentionShape shape_of_axes(const Json& row) {
  const Json& axes = row.at("axes");
  const int64_t length = axes.at("length");
  return {.batch = 1,
          .heads = axes.value("heads", int64_t{1}),
          .q_len = length,
          .kv_len = length,
          .head_dim = axes.value("head_dim", int64_t{16}),
          .causal = axes.value("causal", false)};
}

// A pattern, or blocks that are sorted, whose reach is that of its limit or longer: every position
// is seen.
bool sees_all(const VariantInfo& info, const Params& params, const AttentionShape& shape) {
  const bool selects = info.family == "pattern" || info.family == "hashing or routing";
  const VariantInfo::Reads read = info.read_by(params);
  if (!selects || !read.queries || !read.keys || info.traits.edges || !info.limit) return false;
  const auto limit = info.limit(shape);
  if (!limit) return false;
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

std::vector<std::string> contract_notes(const std::vector<const Json*>& rows) {
  std::set<std::string> exact, other, remarks;
  std::map<std::string, std::set<int64_t>> complete;
  for (const Json* row : rows) {
    if (status_of(*row) != "ok") continue;
    const VariantInfo& info = find_variant(row->at("variant").at("name").get<std::string>());
    (info.traits.exact ? exact : other).insert(info.name);
    const Params params(info.name, info.params, params_of(row->at("variant").at("params")));
    const AttentionShape shape = shape_of_axes(*row);
    if (!shape.causal && info.always_causal && info.always_causal(params))
      remarks.insert(label_of(*row) + " hides the future, though causal is false: less work");
    if (sees_all(info, params, shape))
      complete[label_of(*row)].insert(row->at("axes").at("length").get<int64_t>());
  }
  std::vector<std::string> notes;
  if (!exact.empty() && !other.empty())
    notes.push_back(
        fmt::format("not one function: exact softmax attention is {}; {} {} something else",
                    joined(exact), joined(other), other.size() == 1 ? "computes" : "compute"));
  for (const auto& [label, lengths] : complete)
    notes.push_back(fmt::format("{} sees every position at length {}: it is exact attention there",
                                label, fmt::join(lengths, ", ")));
  notes.insert(notes.end(), remarks.begin(), remarks.end());
  return notes;
}

}  // namespace attn
