// Prints formulas as the C++ body of do_cost, or a table of the counts if no formula fits; see
// derive.h.
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "harness/check/derive.h"

namespace attn {
namespace {

std::string percent(double error) {
  return error <= 1e-9 ? "exact" : fmt::format("within {:.2g} %", 100 * error);
}

// "FLOPs exact, memory within 0.2 %, state exact"
std::string quality(const DerivedCase& of) {
  std::string text =
      fmt::format("FLOPs {}, memory {}", percent(of.flops.error), percent(of.peak.error));
  return of.state ? text + ", state " + percent(of.state->error) : text;
}

std::string in_bytes(const std::string& formula) {
  const bool one_term = formula.find(" + ") == std::string::npos &&
                        formula.find(" - ") == std::string::npos && formula.front() != '-';
  return one_term ? "sizeof(real) * " + formula : "sizeof(real) * (" + formula + ")";
}

// "return {…};" with its fields below each other, from that column on.
std::string returned(const Derivation& of, const DerivedCase& one, size_t column) {
  std::string moved = of.mixer    ? "2 * batch * n * width"
                      : one.cross ? "2 * heads * d * (m + n)"
                                  : "4 * heads * n * d";
  if (of.gate_channels + of.gate_scalars > 0)
    moved = fmt::format("heads * n * ({} * d + {})", 4 + of.gate_channels, of.gate_scalars);
  const std::string below = ",\n" + std::string(column + 8, ' ');
  std::string text =
      fmt::format("return {{.flops = {}{}.bytes = sizeof(real) * {}{}.peak_bytes = {}",
                  one.flops.formula.text(of.names), below, moved, below,
                  in_bytes(one.peak.formula.text(of.names)));
  if (one.state) text += below + ".state_bytes = " + in_bytes(one.state->formula.text(of.names));
  return text + "};\n";
}

// "heads" in "4 * heads * n"
bool uses(const std::string& code, const std::string& name) {
  const auto is_letter = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  for (size_t at = code.find(name); at != std::string::npos; at = code.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !is_letter(code[at - 1])) && (end == code.size() || !is_letter(code[end])))
      return true;
  }
  return false;
}

std::string declarations(const Derivation& of, const std::string& code) {
  const std::pair<const char*, const char*> sizes[] = {
      {"batch", "s.batch"}, {"heads", "s.batch * s.heads"},   {"m", "s.q_len"}, {"n", "s.kv_len"},
      {"d", "s.head_dim"},  {"width", "s.heads * s.head_dim"}};
  std::string text;
  const auto declare = [&](const std::string& name, const std::string& value) {
    text += fmt::format("  const double {} = static_cast<double>({});\n", name, value);
  };
  for (const auto& [name, value] : sizes)
    if (std::count(of.names.begin(), of.names.end(), name) && uses(code, name))
      declare(name, value);
  for (size_t i = 0; i < of.params.size(); i++)
    if (const std::string& name = of.names[of.names.size() - of.params.size() + i];
        uses(code, name))
      declare(name, fmt::format("params().integer(\"{}\")", of.params[i]));
  return text;
}

bool cost_alike(const Derivation& of, const DerivedCase& one, const DerivedCase& other) {
  return one.cross == other.cross &&
         one.flops.formula.text(of.names) == other.flops.formula.text(of.names) &&
         one.peak.formula.text(of.names) == other.peak.formula.text(of.names);
}

// The cases that fit, the others as not declared.
std::string body_of(const Derivation& of) {
  const std::string not_declared = "return {.declared = false};";
  std::string code = "  // Bytes moved cannot be counted: the least, inputs and output once.\n";
  for (size_t i = 0; i < of.cases.size(); i++) {
    const DerivedCase& one = of.cases[i];
    const bool last = i + 1 == of.cases.size();
    if (!last && one.fits() && of.cases[1].fits() && cost_alike(of, one, of.cases[1])) continue;
    const char* const when = last ? "" : "!s.causal";
    if (!one.fits()) {
      code += last ? "  " + not_declared + "\n" : fmt::format("  if ({}) {}\n", when, not_declared);
      continue;
    }
    if (!one.cross && !of.mixer)
      code += fmt::format("  if ({}{}s.q_len != s.kv_len) {}\n", when, last ? "" : " && ",
                          not_declared);
    code += last ? "  " + returned(of, one, 2)
                 : fmt::format("  if ({})\n    {}", when, returned(of, one, 4));
  }
  return code;
}

std::string table_of(const Derivation& of, const DerivedCase& one, const DerivedFigure& figure,
                     const char* unit) {
  constexpr size_t kReadable = 6;  // terms that a reader can make something of
  std::string text = fmt::format(
      "{}{}: no simple formula for the {} within {:.0f} %; the nearest "
      "found is off by {:.2g} %{}\n",
      of.variant, one.causal ? ", causal" : "", unit, 100 * Derivation::kAllowedError,
      100 * figure.error,
      figure.formula.terms.size() <= kReadable ? ": " + figure.formula.text(of.names) : "");
  for (size_t i = 0; i < of.names.size(); i++)
    if (i != 1 || of.names[1] != of.names[2]) text += fmt::format("{:>10}", of.names[i]);
  text += fmt::format("{:>16}{:>16}\n", "counted", "nearest");
  for (const CountedFigure& at : figure.outside) {
    for (size_t i = 0; i < of.names.size(); i++)
      if (i != 1 || of.names[1] != of.names[2]) text += fmt::format("{:>10.0f}", at.sizes[i]);
    text += fmt::format("{:>16.6g}{:>16.6g}\n", at.value, figure.formula.at(at.sizes));
  }
  return text;
}

}  // namespace

std::string Derivation::text() const {
  std::string tables, qualities;
  for (const DerivedCase& one : cases) {
    if (!one.fits() && one.flops.fits())
      tables += fmt::format("{}{}: FLOPs {}: {}\n", variant, one.causal ? ", causal" : "",
                            percent(one.flops.error), one.flops.formula.text(names));
    if (one.fits())
      qualities += fmt::format("// {}{}: {}\n", variant,
                               cases.size() == 1 ? ""
                               : one.causal      ? ", causal"
                                                 : ", not causal",
                               quality(one));
    if (!one.flops.fits()) tables += table_of(*this, one, one.flops, "FLOPs");
    if (!one.peak.fits()) tables += table_of(*this, one, one.peak, "numbers of memory");
    if (one.state && !one.state->fits())
      tables += table_of(*this, one, *one.state, "numbers of state");
  }
  if (qualities.empty()) return tables;
  const std::string body = body_of(*this);
  return fmt::format(
      "{}// Counted on one thread at lengths of 192 to 576, compared at 300, 700 and 960 too"
      "{}.\n"
      "Cost do_cost(const AttentionShape& s) const override {{\n{}{}}}\n{}",
      qualities,
      std::any_of(cases.begin(), cases.end(),
                  [](const DerivedCase& one) { return one.causal && one.cross; })
          ? "; causal: where q_len is at most kv_len"
          : "",
      declarations(*this, body), body, tables);
}

}  // namespace attn
