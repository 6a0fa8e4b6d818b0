// Filters of `list`; see variant_filter.h.
#include "harness/cli/variant_filter.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/base/check.h"
#include "core/base/nearest.h"
#include "harness/cli/describe.h"
#include "harness/plan/grammar.h"
#include "harness/plan/python_variants.h"
#include "variants/catalog.h"

namespace attn::cli {
namespace {

constexpr int64_t kFirstYear = 1900, kLastYear = 2999;

// The words of an option that may be repeated and may hold a list; each must be a known one.
std::vector<std::string> words_of(const Arguments& arguments, const std::string& option,
                                  const std::vector<std::string>& known) {
  std::vector<std::string> words;
  for (const std::string& given : arguments.all(option))
    for (const std::string& word : expand_values("--" + option, given)) {
      ATTN_CHECK(std::find(known.begin(), known.end(), word) != known.end(),
                 "unknown {} '{}'{} (known: {})", option, word, nearest_note(word, known),
                 join(known, ", "));
      words.push_back(word);
    }
  return words;
}

int64_t year(const std::string& text, const std::string& given) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  ATTN_CHECK(error == std::errc() && end == text.data() + text.size() && value >= kFirstYear &&
                 value <= kLastYear,
             "--year takes a year or a range of years, 2024 or 2020:2023, not '{}'", given);
  return value;
}

bool holds(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

std::vector<std::string> all_families() {
  std::vector<std::string> all = families();
  all.emplace_back(kPythonFamily);
  return all;
}

std::vector<Option> variant_filter_options() {
  return {{"family", 0, "NAME", "variants of this family; a list or repeatable", true},
          {"trait", 0, "NAME,NAME", "variants with all of these traits", true},
          {"year", 0, "YEAR", "variants whose paper is of this year, or of years: 2020:2023"}};
}

VariantFilter::VariantFilter(const Arguments& arguments)
    : families_(words_of(arguments, "family", all_families())),
      traits_(words_of(arguments, "trait", trait_names())) {
  if (!arguments.has("year")) return;
  const std::string given = arguments.get("year");
  const size_t colon = given.find(':');
  first_year_ = year(given.substr(0, colon), given);
  last_year_ = colon == std::string::npos ? first_year_ : year(given.substr(colon + 1), given);
  ATTN_CHECK(first_year_ <= last_year_, "--year {}: the first year is after the last", given);
}

std::vector<const VariantInfo*> VariantFilter::matching() const {
  std::vector<const VariantInfo*> found;
  for (const VariantInfo& info : all_variants()) {
    if (!families_.empty() && !holds(families_, info.family)) continue;
    if (!std::all_of(traits_.begin(), traits_.end(),
                     [&](const std::string& trait) { return has_trait(info.traits, trait); }))
      continue;
    if (first_year_ == 0 || (year_of(info) >= first_year_ && year_of(info) <= last_year_))
      found.push_back(&info);
  }
  return found;
}

}  // namespace attn::cli
