// The checks of a variant in double precision, which rounding does not hide; see double_checks.h.
// Compiled only in the double build. Costs about as much as the float checks.
#include "harness/check/double_checks.h"

#include "harness/check/variant_checks.h"
#include "variants/catalog.h"

namespace attn_check {

bool checks_in_double() { return true; }

std::vector<Result> check_in_double(
    const std::string& variant,
    const std::map<std::string, std::variant<int64_t, double, bool, std::string>>& params,
    Level level, const std::string& only) {
  const attn::VariantInfo& info = attn::find_variant(variant);
  const attn::Subject subject(info, params, level);
  std::vector<Result> results;
  for (const attn::VariantCheck& check : attn::variant_check_table()) {
    if (check.precision == attn::Precision::as_built || !check.applies(info)) continue;
    // What is published is computed in float, and these two are the slow ones.
    if (check.precision == attn::Precision::double_in_full && level == Level::quick) continue;
    if ((!only.empty() && only != check.name) || (level == Level::quick && !check.quick)) continue;
    results.push_back(attn::run_check(check, subject));
    results.back().name += " (double)";
  }
  return results;
}

}  // namespace attn_check
