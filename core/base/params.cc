// Parsing, checking and printing of typed parameters; see params.h.
#include "core/base/params.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/base/check.h"
#include "core/base/nearest.h"

namespace attn {
namespace {

std::string join(const std::vector<std::string>& words, std::string_view separator) {
  std::string result;
  for (const std::string& word : words) {
    if (!result.empty()) result += separator;
    result += word;
  }
  return result;
}

template <class T>
bool read_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// A whole number; "4k" is 4096, as the axes of plots write it.
bool read_whole(std::string_view text, int64_t& value) {
  constexpr int64_t kKibi = 1024;
  const bool in_kibi = text.ends_with('k');
  if (in_kibi) text.remove_suffix(1);
  if (!read_number(text, value)) return false;
  return !in_kibi || !__builtin_mul_overflow(value, kKibi, &value);
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); j++) row[j] = j;
  for (size_t i = 1; i <= a.size(); i++) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); j++) {
      const size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, substitute}));
    }
  }
  return row[b.size()];
}

}  // namespace

std::string to_string(const ParamValue& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return fmt::format("{}", *i);
  if (const auto* d = std::get_if<double>(&value)) return fmt::format("{}", *d);
  if (const auto* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  return std::get<std::string>(value);
}

ParamSpec::ParamSpec(std::string n, int64_t v, std::string h, double lo, double hi)
    : name(std::move(n)), value(v), help(std::move(h)), min(lo), max(hi) {}
ParamSpec::ParamSpec(std::string n, int v, std::string h, double lo, double hi)
    : ParamSpec(std::move(n), static_cast<int64_t>(v), std::move(h), lo, hi) {}
ParamSpec::ParamSpec(std::string n, double v, std::string h, double lo, double hi)
    : name(std::move(n)), value(v), help(std::move(h)), min(lo), max(hi) {}
ParamSpec::ParamSpec(std::string n, std::vector<std::string> c, std::string h)
    : name(std::move(n)), value(c.at(0)), help(std::move(h)), choices(std::move(c)) {}

ParamSpec ParamSpec::when(const std::string& other, const std::string& chosen) const {
  ParamSpec result = *this;
  result.conditions.emplace_back(other, chosen);
  return result;
}

ParamSpec ParamSpec::later() const {
  ParamSpec result = *this;
  result.is_later = true;
  return result;
}

bool ParamSpec::counts(const std::map<std::string, ParamValue>& all) const {
  const auto is = [&](const auto& condition) {
    const auto other = all.find(condition.first);
    ATTN_CHECK(other != all.end(), "{} counts by {}, which does not exist", name, condition.first);
    return to_string(other->second) == condition.second;
  };
  return conditions.empty() || std::any_of(conditions.begin(), conditions.end(), is);
}

std::string ParamSpec::condition() const {
  std::string text;
  for (const auto& [other, chosen] : conditions)
    text += fmt::format("{}{}={}", text.empty() ? "" : " or ", other, chosen);
  return text;
}

std::string ParamSpec::type() const {
  static const char* const kNames[] = {"int", "float", "bool", "string"};
  return kNames[value.index()];
}

std::string ParamSpec::range() const {
  if (std::holds_alternative<bool>(value)) return "true|false";
  if (std::holds_alternative<std::string>(value))
    return choices.size() == 1 && choices[0].empty() ? "any text" : join(choices, "|");
  if (std::holds_alternative<int64_t>(value))
    return fmt::format("{}..{}", static_cast<int64_t>(min), static_cast<int64_t>(max));
  return fmt::format("{}..{}", min, max);
}

ParamValue ParamSpec::parse(std::string_view owner, std::string_view text) const {
  const auto refuse = [&]() {
    throw_error(fmt::format("{}: {}={} is not valid; expected {} in {}", owner, name, text, type(),
                            range()));
  };
  ParamValue parsed = value;
  if (std::holds_alternative<int64_t>(value)) {
    int64_t number = 0;
    if (!read_whole(text, number)) refuse();
    parsed = number;
  } else if (std::holds_alternative<double>(value)) {
    double number = 0;
    if (!read_number(text, number)) refuse();
    parsed = number;
  } else if (std::holds_alternative<bool>(value)) {
    if (text != "true" && text != "false") refuse();
    parsed = text == "true";
  } else {
    parsed = std::string(text);
  }
  return checked(owner, parsed);
}

ParamValue ParamSpec::checked(std::string_view owner, const ParamValue& given) const {
  ParamValue result = given;
  if (std::holds_alternative<double>(value) && std::holds_alternative<int64_t>(given))
    result = static_cast<double>(std::get<int64_t>(given));
  bool good = result.index() == value.index();
  if (good) {
    if (const auto* i = std::get_if<int64_t>(&result))
      good = static_cast<double>(*i) >= min && static_cast<double>(*i) <= max;
    if (const auto* d = std::get_if<double>(&result)) good = *d >= min && *d <= max;
    if (const auto* s = std::get_if<std::string>(&result))
      good = (choices.size() == 1 && choices[0].empty()) ||
             std::find(choices.begin(), choices.end(), *s) != choices.end();
  }
  ATTN_CHECK(good, "{}: {}={} is not valid; expected {} in {}", owner, name, to_string(given),
             type(), range());
  return result;
}

Params::Params(std::string_view owner, const std::vector<ParamSpec>& specs,
               const std::map<std::string, ParamValue>& given) {
  std::vector<std::string> names;
  for (const ParamSpec& spec : specs) {
    names.push_back(spec.name);
    const auto it = given.find(spec.name);
    values_[spec.name] = it == given.end() ? spec.value : spec.checked(owner, it->second);
  }
  for (const auto& [name, value] : given) {
    if (values_.count(name)) continue;
    ATTN_CHECK(!names.empty(), "{}: unknown parameter '{}'; it has none", owner, name);
    throw_error(fmt::format("{}: unknown parameter '{}'{} (known: {})", owner, name,
                            nearest_note(name, names), join(names, ", ")));
  }
  for (const ParamSpec& spec : specs)
    ATTN_CHECK(values_[spec.name] == spec.value || spec.counts(values_),
               "{}: {}={} has no effect here: {} counts only with {}", owner, spec.name,
               to_string(values_[spec.name]), spec.name, spec.condition());
}

std::map<std::string, ParamValue> effective(const std::vector<ParamSpec>& specs,
                                            std::map<std::string, ParamValue> given) {
  for (bool again = true; again;) {  // without one, another may lose its condition
    again = false;
    std::map<std::string, ParamValue> all = given;
    for (const ParamSpec& spec : specs) all.emplace(spec.name, spec.value);
    for (const ParamSpec& spec : specs)
      if (!spec.counts(all)) again |= given.erase(spec.name) > 0;
  }
  return given;
}

const ParamValue& Params::at(std::string_view name) const {
  const auto it = values_.find(std::string(name));
  ATTN_CHECK(it != values_.end(), "parameter '{}' is not declared", name);
  return it->second;
}

Params Params::unchecked(std::map<std::string, ParamValue> values) {
  Params params;
  params.values_ = std::move(values);
  return params;
}

Params Params::without(const std::vector<std::string>& names) const {
  Params rest = *this;
  for (const std::string& name : names) rest.values_.erase(name);
  return rest;
}

Params Params::for_key(const std::vector<ParamSpec>& specs) const {
  Params kept = *this;
  for (const ParamSpec& spec : specs) {
    const auto at = kept.values_.find(spec.name);
    if (spec.is_later && at != kept.values_.end() && at->second == spec.value)
      kept.values_.erase(at);
  }
  return kept;
}

int64_t Params::integer(std::string_view name) const { return std::get<int64_t>(at(name)); }
double Params::number(std::string_view name) const {
  const ParamValue& value = at(name);
  const auto* const whole = std::get_if<int64_t>(&value);  // of unchecked()
  return whole ? static_cast<double>(*whole) : std::get<double>(value);
}
bool Params::flag(std::string_view name) const { return std::get<bool>(at(name)); }
const std::string& Params::text(std::string_view name) const {
  return std::get<std::string>(at(name));
}

std::string Params::str() const {
  std::string result;
  for (const auto& [name, value] : values_) {
    const std::string text = to_string(value);
    if (text.empty()) continue;  // a free text not given; `name=` would not read back
    if (!result.empty()) result += ',';
    result += name + '=' + text;
  }
  return result;
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = static_cast<size_t>(-1);
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) best = candidate, best_distance = distance;
  }
  return best;
}

std::string nearest_note(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string name = nearest(word, candidates);
  if (edit_distance(word, name) > std::max(word.size(), name.size()) / 2) return "";
  return fmt::format("; nearest is '{}'", name);
}

}  // namespace attn
