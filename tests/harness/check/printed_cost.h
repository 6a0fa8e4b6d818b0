// The printed body of a do_cost, read and evaluated as a compiler would: its variables, and the
// fields of what it returns.
#pragma once

#include <cctype>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

#include "variants/api/cost.h"

namespace attn {

// Sums of products of numbers and names, with brackets.
class Expression {
 public:
  Expression(const std::string& text, const std::map<std::string, double>& names)
      : at_(text.c_str()), names_(names) {}
  double sum() {
    skip();
    double total = *at_ == '-' ? (at_++, -product()) : product();
    for (skip(); *at_ == '+' || *at_ == '-'; skip()) {
      const bool minus = *at_++ == '-';
      total += minus ? -product() : product();
    }
    return total;
  }

 private:
  double product() {
    double all = factor();
    for (skip(); *at_ == '*'; skip()) at_++, all *= factor();
    return all;
  }
  double factor() {
    skip();
    if (*at_ == '(') {
      at_++;
      const double inner = sum();
      skip();
      at_++;
      return inner;
    }
    if (std::isdigit(static_cast<unsigned char>(*at_))) {
      char* end = nullptr;
      const double number = std::strtod(at_, &end);
      at_ = end;
      return number;
    }
    std::string name;
    while (std::isalnum(static_cast<unsigned char>(*at_)) || *at_ == '_' || *at_ == '.')
      name += *at_++;
    if (name == "sizeof") at_ += 6;  // "(real)"
    return name == "sizeof" ? sizeof(real) : names_.at(name);
  }
  void skip() {
    while (*at_ == ' ') at_++;
  }

  const char* at_;
  const std::map<std::string, double>& names_;
};

// What stands behind ".flops = " up to the end of its line, of the return for these masks.
inline std::string field(const std::string& code, const std::string& name, bool causal) {
  const size_t other = code.find("if (!s.causal)\n");
  size_t begin = other == std::string::npos ? 0 : other;
  if (causal && other != std::string::npos) begin = code.find("};", other);
  const size_t from = code.find("." + name + " = ", begin);
  if (from == std::string::npos) return "0";
  const size_t value = from + name.size() + 4, end = code.find('\n', value);
  std::string text = code.substr(value, end - value);
  while (!text.empty() && std::string(",};").find(text.back()) != std::string::npos)
    text.pop_back();
  return text;
}

// What "  const double d = static_cast<double>(s.head_dim);" and its neighbours give.
inline std::map<std::string, double> variables(const std::string& code, const AttentionShape& s,
                                               const Params& params) {
  const std::map<std::string, double> known = {{"s.batch", static_cast<double>(s.batch)},
                                               {"s.heads", static_cast<double>(s.heads)},
                                               {"s.q_len", static_cast<double>(s.q_len)},
                                               {"s.kv_len", static_cast<double>(s.kv_len)},
                                               {"s.head_dim", static_cast<double>(s.head_dim)}};
  std::map<std::string, double> result;
  std::istringstream lines(code);
  for (std::string line; std::getline(lines, line);) {
    const std::string declares = "  const double ", cast = " = static_cast<double>(";
    const size_t equals = line.find(cast);
    if (!line.starts_with(declares) || equals == std::string::npos) continue;
    const std::string name = line.substr(declares.size(), equals - declares.size());
    const std::string value =
        line.substr(equals + cast.size(), line.size() - equals - cast.size() - 2);
    const size_t quote = value.find('"');
    result[name] = quote == std::string::npos ? Expression(value, known).sum()
                                              : static_cast<double>(params.integer(value.substr(
                                                    quote + 1, value.rfind('"') - quote - 1)));
  }
  return result;
}

}  // namespace attn
