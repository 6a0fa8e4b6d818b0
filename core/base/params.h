// Typed parameters of variants and tasks. ParamSpec describes one parameter; Params holds the
// chosen values.
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

// 64, 0.25, true, tiled; ParamSpec::parse() restores the value.
std::string to_string(const ParamValue& value);

// One parameter. The type of its default is its type. A number must be in [min, max], a string must
// be one of `choices`.
struct ParamSpec {
  ParamSpec(std::string name, int64_t value, std::string help, double min = 1, double max = 1e9);
  ParamSpec(std::string name, int value, std::string help, double min = 1, double max = 1e9);
  ParamSpec(std::string name, double value, std::string help, double min, double max);
  template <std::same_as<bool> Bool>  // no conversion of a text to bool
  ParamSpec(std::string name_, Bool value_, std::string help_)
      : name(std::move(name_)), value(value_), help(std::move(help_)) {}
  // The default is the first choice. A single empty choice ("") means free text.
  ParamSpec(std::string name, std::vector<std::string> choices, std::string help);
  // A copy that has an effect only where parameter `other` equals `value`. Several calls give
  // several conditions, of which one must hold. Where none holds, Params accepts only the default.
  ParamSpec when(const std::string& other, const std::string& value) const;
  // A copy for a parameter that was added when rows existed; see for_key().
  ParamSpec later() const;

  std::string name;
  ParamValue value;  // the default
  std::string help;
  double min = 0, max = 0;
  std::vector<std::string> choices;
  // (name of the other parameter, value); one must hold, if there are any.
  std::vector<std::pair<std::string, std::string>> conditions;
  bool is_later = false;

  bool counts(const std::map<std::string, ParamValue>& all) const;  // whether it has an effect
  std::string condition() const;  // "kind=random or as=lra"; "" without conditions
  std::string type() const;       // "int", "float", "bool", "string"
  std::string range() const;      // "1..1000000000", "tiled|materialized", "true|false"
  // Converts text to a value of this parameter's type. The Error names `owner`, the parameter, the
  // text and the range.
  ParamValue parse(std::string_view owner, std::string_view text) const;
  // The value, if type and range are right (an integer may stand for a float); else an Error.
  ParamValue checked(std::string_view owner, const ParamValue& value) const;
};

// The values of all parameters of one variant or task.
class Params {
 public:
  Params() = default;
  // The values `given`, and defaults for the others. For an unknown name, the Error suggests the
  // nearest known name.
  Params(std::string_view owner, const std::vector<ParamSpec>& specs,
         const std::map<std::string, ParamValue>& given = {});
  // Of values that were checked before, such as those of a row.
  static Params unchecked(std::map<std::string, ParamValue> values);

  int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  bool flag(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  const std::map<std::string, ParamValue>& values() const { return values_; }
  std::string str() const;  // "rank=64,shared=true", in alphabetical order
  Params without(const std::vector<std::string>& names) const;
  // As the key of a cell holds them: without the later ones at their default, so that the cells
  // measured before these parameters were there keep their ids.
  Params for_key(const std::vector<ParamSpec>& specs) const;
  bool operator==(const Params&) const = default;

 private:
  const ParamValue& at(std::string_view name) const;
  std::map<std::string, ParamValue> values_;
};

// `given` without the parameters that have no effect (ParamSpec::when).
std::map<std::string, ParamValue> effective(const std::vector<ParamSpec>& specs,
                                            std::map<std::string, ParamValue> given);

// The candidate with the smallest edit distance to `word`, for "did you mean"; "" without
// candidates.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace attn
