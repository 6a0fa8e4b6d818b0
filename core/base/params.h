// Typed parameters of variants and tasks: what exists (ParamSpec), what was chosen (Params), and
// how it is written.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace attn {

using ParamValue = std::variant<int64_t, double, bool, std::string>;

std::string to_string(
    const ParamValue& value);  // 64, 0.25, true, tiled: reads back to the same value

// One parameter: its default gives its type. `min`/`max` bound numbers (both included), `choices`
// strings.
struct ParamSpec {
  ParamSpec(std::string name, int64_t value, std::string help, double min = 1, double max = 1e9);
  ParamSpec(std::string name, int value, std::string help, double min = 1, double max = 1e9);
  ParamSpec(std::string name, double value, std::string help, double min, double max);
  template <std::same_as<bool> Bool>  // a text such as "" must not become `true`
  ParamSpec(std::string name_, Bool value_, std::string help_)
      : name(std::move(name_)), value(value_), help(std::move(help_)) {}
  // The default is the first choice. A single empty choice ("") means free text.
  ParamSpec(std::string name, std::vector<std::string> choices, std::string help);
  // It counts only where `other` is `value`, or where another call says: elsewhere another value
  // than the default is an Error of Params.
  ParamSpec when(const std::string& other, const std::string& value) const;

  std::string name;
  ParamValue value;  // the default
  std::string help;
  double min = 0, max = 0;
  std::vector<std::string> choices;
  std::vector<std::pair<std::string, std::string>> conditions;  // one must hold, if there are any

  bool counts(const std::map<std::string, ParamValue>& all) const;  // with these values, all named
  std::string condition() const;  // "kind=random or as=lra"; "" where it always counts
  std::string type() const;       // "int", "float", "bool", "string"
  std::string range() const;      // "1..1000000000", "tiled|materialized", "true|false"
  // Text to a value of this parameter's type; Error names `owner`, the parameter, the offending
  // text and the range.
  ParamValue parse(std::string_view owner, std::string_view text) const;
  // Error when `value` has another type (an integer is accepted for a float) or is out of range.
  ParamValue checked(std::string_view owner, const ParamValue& value) const;
};

// The chosen values of one variant or task, every parameter present.
class Params {
 public:
  Params() = default;
  // Defaults of `specs` overlaid with `given`; an unknown name is an Error that names the nearest
  // known one.
  Params(std::string_view owner, const std::vector<ParamSpec>& specs,
         const std::map<std::string, ParamValue>& given = {});

  int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  bool flag(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  const std::map<std::string, ParamValue>& values() const { return values_; }
  std::string str() const;  // "rank=64,shared=true", in alphabetical order; "" when there is none

 private:
  const ParamValue& at(std::string_view name) const;
  std::map<std::string, ParamValue> values_;
};

// Without those that have no effect beside the others (ParamSpec::when).
std::map<std::string, ParamValue> effective(const std::vector<ParamSpec>& specs,
                                            std::map<std::string, ParamValue> given);

// The candidate with the smallest edit distance to `word`, for "did you mean"; "" when there is
// none.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace attn
