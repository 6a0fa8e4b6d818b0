// See earlier.h. Every kind of line that tests/data/rows holds goes through here.
#include "harness/compare/earlier.h"

#include "harness/cell/codec.h"
#include "variants/catalog.h"

namespace attn {
namespace {

// The objects of a list; none where there is no such list.
template <class Change>
void for_each_object(Json& parent, const char* list, const Change& change) {
  const auto found = parent.find(list);
  if (found == parent.end() || !found->is_array()) return;
  for (Json& item : *found)
    if (item.is_object()) change(item);
}

}  // namespace

RunLine earlier_run_line(Json line) {
  for_each_object(line["config"], "sweeps", [](Json& sweep) {
    if (!sweep.contains("tuned")) sweep["tuned"] = Json::array();
  });
  for_each_object(line, "variants", [](Json& variant) {
    if (variant.contains("family") || !variant.contains("name") || !variant["name"].is_string())
      return;
    const VariantInfo* const info = variant_named(variant["name"].get<std::string>());
    variant["family"] = info ? info->family : "";
  });
  return run_line_of(line);
}

}  // namespace attn
