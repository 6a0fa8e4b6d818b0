// Splits specs at commas outside brackets and expands ranges; see grammar.h.
#include "harness/plan/grammar.h"

#include <charconv>
#include <cmath>

#include "core/base/check.h"
#include "variants/api/stack_text.h"

namespace attn {
namespace {

constexpr size_t kMostValues = 1000;   // of one parameter: more is a typing error, not a sweep
constexpr size_t kMostSettings = 100;  // of a spec: each is held once a combination

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// The parts between commas that stand outside every bracket.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] == '[') depth++;
    if (text[i] == ']') depth--;
    ATTN_CHECK(depth >= 0, "'{}': a ']' without its '['", text);
    if (text[i] != ',' || depth > 0) continue;
    parts.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  ATTN_CHECK(depth == 0, "'{}': a '[' without its ']'", text);
  parts.push_back(trimmed(text.substr(begin)));
  return parts;
}

// A number of a range; "4k" is 4096, as in ParamSpec::parse.
bool read_double(std::string_view text, double& value) {
  const bool in_kibi = text.ends_with('k');
  if (in_kibi) text.remove_suffix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  if (in_kibi) value *= 1024;
  return std::isfinite(value);
}

// "a:b:*2" or "a:b:+k"; the end is included where the steps reach it.
void expand_range(std::string_view what, std::string_view text, std::vector<std::string>& values) {
  const size_t first = text.find(':');
  const size_t second = text.find(':', first + 1);
  const auto refuse = [&](std::string_view why) {
    throw_error(fmt::format("{}: '{}' is no range: {}; write a:b:*2 or a:b:+k", what, text, why));
  };
  if (second == std::string_view::npos) refuse("the step is missing");
  double from = 0, to = 0, step = 0;
  if (!read_double(text.substr(0, first), from)) refuse("it does not start with a number");
  if (!read_double(text.substr(first + 1, second - first - 1), to))
    refuse("its end is not a number");
  const std::string_view how = text.substr(second + 1);
  if (how.empty() || (how[0] != '*' && how[0] != '+')) refuse("the step must begin with * or +");
  if (!read_double(how.substr(1), step)) refuse("the step is not a number");
  if (to < from) refuse("its end is below its start");
  const bool times = how[0] == '*';
  if (times && (!(from > 0) || !(step > 1)))
    refuse("a factor needs a start above 0 and must be above 1");
  if (!times && !(step > 0)) refuse("the step must be above 0");
  const double slack = 1e-9 * std::max(std::abs(to), std::abs(step));  // 0.1:0.3:+0.1 includes 0.3
  for (size_t i = 0;; i++) {
    const double exact = times ? from * std::pow(step, static_cast<double>(i))
                               : from + static_cast<double>(i) * step;
    if (exact > to + slack) break;
    if (values.size() >= kMostValues) refuse("it has too many values");
    values.push_back(fmt::format("{:.12g}", exact));
  }
}

void expand_into(std::string_view what, std::string_view text, std::vector<std::string>& values) {
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']')
    text = text.substr(1, text.size() - 2);
  for (const std::string_view part : split(text)) {
    ATTN_CHECK(!part.empty(), "{}: an empty value in '{}'", what, text);
    ATTN_CHECK(part.find_first_of("[]=") == std::string_view::npos, "{}: '{}' is no value", what,
               part);
    if (part.find(':') != std::string_view::npos) {
      expand_range(what, part, values);
    } else {
      ATTN_CHECK(values.size() < kMostValues, "{}: more than {} values", what, kMostValues);
      values.emplace_back(part);
    }
  }
}

}  // namespace

std::vector<std::string> expand_values(std::string_view what, std::string_view text) {
  std::vector<std::string> values;
  expand_into(what, trimmed(text), values);
  return values;
}

std::vector<Setting> parse_settings(std::string_view text) {
  std::vector<Setting> settings;
  if (trimmed(text).empty()) return settings;
  for (const std::string_view part : split(text)) {
    const size_t equals = part.find('=');
    ATTN_CHECK(equals != std::string_view::npos && equals > 0,
               "'{}': '{}' is not param=value; several values are written param=[v,v]", text, part);
    const std::string name(trimmed(part.substr(0, equals)));
    ATTN_CHECK(settings.size() < kMostSettings, "'{}...': more than {} parameters",
               text.substr(0, 60), kMostSettings);
    for (const Setting& other : settings)
      ATTN_CHECK(other.name != name, "'{}': parameter '{}' is given twice", text, name);
    settings.push_back({name, expand_values(name, part.substr(equals + 1))});
  }
  return settings;
}

namespace {

Spec parse_single(std::string_view text) {
  size_t end = 0;
  if (text.starts_with("python:"))  // a path may hold anything but '['
    end = std::min(text.find('['), text.size());
  else
    while (end < text.size() && is_name_char(text[end])) end++;
  ATTN_CHECK(end > 0, "'{}' is no spec: it must begin with a name; write name or name[param=value]",
             text);
  Spec spec{std::string(text.substr(0, end)), {}};
  std::string_view rest = text.substr(end);
  if (rest.empty()) return spec;
  ATTN_CHECK(rest.front() != ',',
             "'{}' names more than one; give each an option of its own, as in -v full -v linear or "
             "-t mqar -t copy",
             text);
  ATTN_CHECK(rest.front() == '[',
             "'{}' is no spec: '{}' after the name; write name or name[param=value]", text, rest);
  ATTN_CHECK(rest.size() >= 2 && rest.back() == ']', "'{}' is no spec: it does not end with ']'",
             text);
  spec.settings = parse_settings(rest.substr(1, rest.size() - 2));
  return spec;
}

}  // namespace

Spec parse_spec(std::string_view text) {
  text = spelled_out(trimmed(text));
  if (text.starts_with("python:") || !is_stack_text(text)) return parse_single(text);
  Spec stack{std::string(text), {}};
  for (const auto& [times, part] : stack_parts(text))
    stack.layers.emplace_back(parse_single(part), times);
  return stack;
}

std::vector<Choice> cross_product(const std::vector<Setting>& settings) {
  std::vector<Choice> choices = {{}};
  for (const Setting& setting : settings) {
    ATTN_CHECK(choices.size() * setting.values.size() <= kMostCells,
               "more than {} combinations with the {} values of {}; ask for fewer", kMostCells,
               setting.values.size(), setting.name);
    std::vector<Choice> longer;
    for (const Choice& choice : choices)
      for (const std::string& value : setting.values) {
        longer.push_back(choice);
        longer.back().emplace_back(setting.name, value);
      }
    choices = std::move(longer);
  }
  return choices;
}

std::vector<Setting> overlay(std::vector<Setting> base, const std::vector<Setting>& over) {
  for (const Setting& setting : over) {
    bool replaced = false;
    for (Setting& known : base)
      if (known.name == setting.name) known.values = setting.values, replaced = true;
    if (!replaced) base.push_back(setting);
  }
  return base;
}

std::string join(const std::vector<std::string>& words, std::string_view separator) {
  std::string joined;
  for (const std::string& word : words) {
    if (!joined.empty()) joined += separator;
    joined += word;
  }
  return joined;
}

}  // namespace attn
