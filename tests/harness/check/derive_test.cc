// The formulas that `check --derive` prints against those that the variants declare, at shapes that
// were not in the grid, read off the printed code as a compiler would read them.
#include "harness/check/derive.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <cctype>
#include <cstdlib>
#include <sstream>
#include "variants/api/cost.h"
#include "tests/variants/undeclared.h"
#include "variants/catalog.h"
#include "tests/said.h"

namespace attn::derive_test {
namespace {

// The printed body of a do_cost, read and evaluated as a compiler would: its variables, and the
// fields of what it returns.

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
std::string field(const std::string& code, const std::string& name, bool causal) {
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
std::map<std::string, double> variables(const std::string& code, const AttentionShape& s,
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

bool crosses(const Derivation& found, bool causal) {
  for (const DerivedCase& one : found.cases)
    if (one.causal == causal) return one.cross;
  return false;
}

// The engine of tiled softmax holds tiles of keys, strips of logits and, for few heads, parts that
// threads share: their sizes go in steps with every size, and are no sum of products. FLOPs are.
void expect_flops_alone(const char* name) {
  const VariantInfo& info = find_variant(name);
  const Derivation found = derive_cost(info, {});
  const DerivedCase& one = found.cases.at(0);
  EXPECT_TRUE(one.flops.fits());
  EXPECT_FALSE(one.peak.fits());
  const std::string text = found.text();
  EXPECT_TRUE(says(text, "FLOPs"));
  EXPECT_TRUE(says(text, one.flops.formula.text(found.names)));
  EXPECT_TRUE(says(text, "no simple formula for the numbers of memory within 1 %"));
  for (const auto& [n, d] : {std::pair<int64_t, int64_t>{960, 24}, {1152, 40}, {1344, 56}}) {
    const AttentionShape shape{2, 3, n, n, d, false};
    const double counted = one.flops.formula.at(found.sizes(shape, Params(info.name, info.params)));
    EXPECT_NEAR(counted / attention_for(info, shape)->cost(shape).flops, 1, 0.01) << n << "\n"
                                                                                  << text;
  }
}

// Of FLOPs and peak bytes, at shapes outside the grid.
void expect_as_declared(const VariantInfo& info, bool causal,
                        const std::function<Cost(const AttentionShape&)>& declared) {
  SCOPED_TRACE(info.name + (causal ? ", causal" : ""));
  const Derivation found = derive_cost(info, {});
  const std::string code = found.text();
  for (const auto& [n, d] : {std::pair<int64_t, int64_t>{960, 24}, {1152, 40}, {1344, 56}}) {
    const AttentionShape shape{2, 3, crosses(found, causal) ? n / 2 : n, n, d, causal};
    const std::map<std::string, double> names =
        variables(code, shape, Params(info.name, info.params));
    const Cost want = declared(shape);
    const auto share = [&](const char* name) {
      return Expression(field(code, name, causal), names).sum();
    };
    EXPECT_NEAR(share("flops") / want.flops, 1, 0.01) << n << "\n" << code;
    EXPECT_NEAR(share("peak_bytes") / want.peak_bytes, 1, 0.01) << n << "\n" << code;
    const double once = static_cast<double>(shape.q_len + n) * static_cast<double>(6 * d);
    EXPECT_EQ(share("bytes"), sizeof(real) * (info.traits.mixer ? 1 : 2) * once) << code;
    if (want.state_bytes > 0 && info.traits.decode) {
      EXPECT_NEAR(share("state_bytes") / want.state_bytes, 1, 0.01) << n << "\n" << code;
    }
  }
}

void expect_as_declared(const char* name, bool causal) {
  const VariantInfo& info = find_variant(name);
  expect_as_declared(info, causal, [&](const AttentionShape& shape) {
    return attention_for(info, shape)->cost(shape);
  });
}

TEST(Derive, FindsTheFormulasOfLinear) { expect_as_declared("linear", false); }
TEST(Derive, FindsTheFlopsOfTruncated) { expect_flops_alone("truncated"); }
TEST(Derive, FindsTheFlopsOfLinformer) { expect_flops_alone("linformer"); }
TEST(Derive, FindsTheFormulasOfAMixer) { expect_as_declared("mean", true); }

TEST(Derive, IsExactForAVariantThatDeclaresNone) {
  for (const bool causal : {false, true})
    expect_as_declared(undeclared(), causal, [](const AttentionShape& s) {
      const double heads = static_cast<double>(s.batch * s.heads);
      const double m = static_cast<double>(s.q_len), n = static_cast<double>(s.kv_len);
      const double d = static_cast<double>(s.head_dim);
      return Cost{.flops = heads * 4 * m * n * d,
                  .bytes = sizeof(real) * heads * 2 * d * (m + n),
                  .peak_bytes = sizeof(real) * heads * m * (3 * n + d)};
    });
  const Derivation found = derive_cost(undeclared(), {});
  ASSERT_EQ(found.cases.size(), 2U);
  EXPECT_TRUE(found.cases[0].cross && found.cases[1].cross);
  EXPECT_EQ(found.cases[0].flops.formula.text(found.names), "4 * heads * m * n * d");
  EXPECT_LE(found.cases[0].flops.error, 1e-9);
  EXPECT_TRUE(says(found.text(), "FLOPs exact"));
}

// Scores against the first `rank` keys alone: the formula follows the parameter.
TEST(Derive, FollowsAParameter) {
  class First final : public Attention {
   public:
    explicit First(const AttentionConfig& config) : Attention(config) {}

   private:
    Var do_forward(const Var& q, const Var& k, const Var& v, const Mask&) const override {
      const int64_t rank = params().integer("rank");
      return matmul(matmul(q, slice(k, 2, 0, rank), false, true), slice(v, 2, 0, rank));
    }
  };
  VariantInfo first = undeclared();
  first.name = "first";
  first.traits.causal = false;
  first.params = {{"rank", 24, "keys that are seen"}, {"idle", 5, "counts for nothing"}};
  first.make = make_as<First>;
  const Derivation found = derive_cost(first, {});
  EXPECT_EQ(found.params, std::vector<std::string>{"rank"});
  EXPECT_EQ(found.cases.at(0).flops.formula.text(found.names), "4 * heads * m * d * rank");
  EXPECT_TRUE(says(found.text(), "params().integer(\"rank\")"));
  expect_as_declared(first, false, [](const AttentionShape& s) {
    const double heads = static_cast<double>(s.batch * s.heads), rank = 24;
    const double m = static_cast<double>(s.q_len), d = static_cast<double>(s.head_dim);
    return Cost{.flops = heads * 4 * m * rank * d,
                .peak_bytes = sizeof(real) * heads * (m * rank + 2 * rank * d + m * d)};
  });
}

// `linear` without its formulas gets the same ones, and its decoder's state.
TEST(Derive, FindsTheStateOfADecoder) {
  const Derivation found = derive_cost(undeclared_linear(), {});
  for (const DerivedCase& one : found.cases) {
    ASSERT_TRUE(one.state);
    EXPECT_EQ(one.state->formula.text(found.names), "heads * d + heads * d * d");
  }
}

// Pairs up to 500 keys and no more: no sum of products.
TEST(Derive, SaysSoWhereNoFormulaFits) {
  class Bent final : public Attention {
   public:
    explicit Bent(const AttentionConfig& config) : Attention(config) {}

   private:
    Var do_forward(const Var& q, const Var& k, const Var& v, const Mask&) const override {
      const int64_t seen = std::min<int64_t>(k.dim(2), 250);
      return matmul(matmul(q, slice(k, 2, 0, seen), false, true), slice(v, 2, 0, seen));
    }
  };
  VariantInfo bent = undeclared();
  bent.name = "bent";
  bent.traits.causal = bent.traits.cross = false;
  bent.make = make_as<Bent>;
  const Derivation found = derive_cost(bent, {});
  ASSERT_EQ(found.cases.size(), 1U);
  EXPECT_FALSE(found.cases[0].flops.fits());
  const std::string text = found.text();
  EXPECT_TRUE(says(text, "no simple formula for the FLOPs within 1 %"));
  EXPECT_FALSE(says(text, "do_cost"));
  EXPECT_TRUE(says(text, "counted"));
}

TEST(Derive, RefusesWhatCannotRun) {
  VariantInfo never = undeclared();
  never.skip_reason = [](const AttentionShape&, const Params&) { return "the moon is full"; };
  EXPECT_THROW(derive_cost(never, {}), Error);
}

}  // namespace
}  // namespace attn::derive_test
