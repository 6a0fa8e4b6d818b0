// Variants as recurrences: their gates, and the forms of one step and of all steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/autograd/var.h"
#include "core/ops/ops.h"
#include "core/ops/ops_heads.h"
#include "harness/check/double_checks.h"
#include "harness/cli/apply_run.h"
#include "tests/variants/api/decoder_steps.h"
#include "tests/variants/oracle_bridge.h"
#include "variants/api/gated_attention.h"
#include "variants/api/gates.h"
#include "variants/catalog.h"

namespace attn::recurrent_forms_test {
namespace {

// Gates: what a projection costs, how random ones are drawn, what build() and a decoder refuse, and
// that query heads that share keys keep gates of their own.

TEST(Gates, AProjectionCostsItsMatrices) {
  EXPECT_EQ(projection_weights({.name = "a", .width = 8}, 64, 4), 64 * 32);
  EXPECT_EQ(projection_weights({.name = "a", .width = 8, .rank = 3}, 64, 4), 64 * 3 + 3 * 32);
  EXPECT_EQ(total_width({{.name = "a", .width = 8}, {.name = "b"}}), 9);
}

// Of head h and channel c: N(bias, scale²), of an own stream for each name, seed and part.
TEST(Gates, RandomOnesLieAroundTheStartOfTheBias) {
  const std::vector<GateInput> gates = {{.name = "a", .width = 2, .bias = {10, 20, 30, 40}},
                                        {.name = "b"}};
  const std::vector<Tensor> x = random_gates(gates, 3, 2, 200, 1, 0.5);
  ASSERT_EQ(x.size(), 2u);
  EXPECT_EQ(x[0].shape(), (Shape{3, 2, 200, 2}));
  EXPECT_EQ(x[1].shape(), (Shape{3, 2, 200, 1}));
  double sums[4] = {};
  for (int64_t i = 0; i < x[0].size(); ++i) sums[i / 400 % 2 * 2 + i % 2] += x[0][i] / 600.0;
  for (int j = 0; j < 4; ++j) EXPECT_NEAR(sums[j], 10 * (j + 1), 5 * 0.5 / std::sqrt(600.0));
  const auto first = [&](uint64_t seed, uint64_t index) {
    return random_gates(gates, 1, 2, 1, seed, 1, index)[1][0];
  };
  EXPECT_EQ(first(1, 0), first(1, 0));
  EXPECT_NE(first(1, 0), first(2, 0));
  EXPECT_NE(first(1, 0), first(1, 1));
}

class Own final : public GatedAttention {
 public:
  explicit Own(const AttentionConfig& config) : GatedAttention(config) {}

 private:
  Var do_gated_forward(const Var&, const Var&, const Var& v, std::span<const Var>,
                       const Mask&) const override {
    return v;
  }
};

TEST(Gates, TheTraitAndTheDeclarationSayTheSame) {
  const AttentionConfig config{1, 2, 8, false, 1, {}};
  VariantInfo info;
  info.name = "own";
  info.make = make_as<Own>;
  info.gates = [](const AttentionConfig&) { return std::vector<GateInput>{{.name = "a"}}; };
  EXPECT_THROW(info.build(config, {}), Error);
  info.traits.gated = true;
  EXPECT_EQ(info.build(config, {})->gates().size(), 1u);
  info.traits.cross = true;
  EXPECT_THROW(info.build(config, {}), Error);
  info.traits.cross = false;
  info.gates = [](const AttentionConfig&) {
    return std::vector<GateInput>(5, GateInput{.name = "a"});
  };
  EXPECT_THROW(info.build(config, {}), Error);
  info.gates = nullptr;
  EXPECT_THROW(info.build(config, {}), Error);
}

TEST(Gates, OfADecoderMustFit) {
  const auto gla = find_variant("gla").build({2, 4, 8, true, 1, {}}, {});
  const auto decoder = gla->decoder(1, 8);
  const Tensor x = bridge::normal({1, 2, 3, 4}, "x"), row = positions(x, 0, 1), out(row.shape());
  const std::vector<Tensor> three = {x}, one = {row};
  EXPECT_THROW(decoder->extend(x, x), Error);
  EXPECT_THROW(decoder->extend(x, x, {}, one), Error);
  EXPECT_THROW(decoder->step(row, row, row, out), Error);
  EXPECT_THROW(decoder->step(row, row, row, out, three), Error);
  EXPECT_EQ(decoder->length(), 0);
  EXPECT_NO_THROW(decoder->extend(x, x, {}, three));
  EXPECT_NO_THROW(decoder->step(row, row, row, out, one));
  const auto full = find_variant("full").build({2, 4, 8, true, 1, {}}, {});
  EXPECT_THROW(full->decoder(1, 8)->extend(x, x, {}, three), Error);
}

// A state for each query head, and the answers of keys that the caller repeats.
TEST(Gates, StayWithTheirQueryHeadWhereKeysAreShared) {
  for (const char* name : {"gla", "mamba2"}) {
    const auto attention = find_variant(name).build({4, 3, 9, true, 1, {}}, {});
    const Tensor q = bridge::normal({2, 4, 9, 3}, "q"), k = bridge::normal({2, 2, 9, 3}, "k"),
                 v = bridge::normal({2, 2, 9, 3}, "v");
    const NoGrad no_grad;
    const auto repeated = [](const Tensor& x) { return repeat_heads(Var(x), 2).value(); };
    const std::vector<Tensor> gates = random_gates(attention->gates(), 2, 4, 9, 5);
    const Tensor want =
        attention->forward(Var(q), Var(repeated(k)), Var(repeated(v)), {true, {}}, leaves_of(gates))
            .value();
    const auto decoder = attention->decoder(2, 9, 2);
    EXPECT_EQ(decoder->state_bytes(), attention->decoder(2, 9)->state_bytes());
    decoder->extend(positions(k, 0, 4), positions(v, 0, 4), {},
                    std::vector<Tensor>{positions(gates[0], 0, 4)});
    for (int64_t t = 4; t < 9; ++t) {
      const Tensor out({2, 4, 1, 3});
      decoder->step(positions(q, t, t + 1), positions(k, t, t + 1), positions(v, t, t + 1), out,
                    std::vector<Tensor>{positions(gates[0], t, t + 1)});
      EXPECT_LE(bridge::relative_error(out, bridge::array_of(positions(want, t, t + 1)).x), 1e-5)
          << name << " " << t;
    }
  }
}

// Variants whose state does not grow with the length, in their other forms: positions appended 1,
// 7, 16, 64 or all at once and answered from the state against one forward pass over all, and a
// forward in float over 65536 positions against the double build with the same weights.

constexpr int64_t kShort = 200;  // three chunks of 64 and the beginning of a fourth
constexpr int64_t kLong = 65536;
// Of the largest output. Sums of up to 65536 terms are rounded about √65536 times at random.
constexpr double kAllowed = 60 * static_cast<double>(kEpsilon);

double largest(const Tensor& t) {
  double result = 0;
  for (const real value : t.values())
    result = std::max(result, std::abs(static_cast<double>(value)));
  return result;
}

double largest_error(const Tensor& got, const std::vector<double>& want) {
  double error = 0;
  for (int64_t i = 0; i < got.size(); i++) {
    const double off = std::abs(static_cast<double>(got[i]) - want[static_cast<size_t>(i)]);
    if (std::isnan(off)) return off;
    error = std::max(error, off);
  }
  return error;
}

AttentionShape shape_of(int64_t heads, int64_t len) {
  return {.batch = 1, .heads = heads, .q_len = len, .kv_len = len, .head_dim = 8, .causal = true};
}

std::unique_ptr<Attention> built(const VariantInfo& info, const AttentionShape& shape) {
  auto attention = info.build({.heads = shape.heads,
                               .head_dim = shape.head_dim,
                               .max_len = shape.kv_len,
                               .causal = true,
                               .seed = 5,
                               .params = {}},
                              {});
  for (const Weight& weight : attention->weights()) {  // zeros and ones would hide one left out
    if (!weight.learned) continue;
    const Tensor moved = weight.value.value().clone();
    Rng random = rng(7, weight.name);
    for (real& value : moved.values()) value += static_cast<real>(0.1 * random.normal());
    weight.value.set_value(moved);
  }
  return attention;
}

struct Pass {
  StepInputs x;
  std::vector<Tensor> gates;
  Tensor out;

  Pass(const Attention& attention, const AttentionShape& s)
      : x(inputs({s.batch, s.heads, s.kv_len, s.head_dim})),
        gates(random_gates(attention.gates(), s.batch, s.heads, s.kv_len, 8)) {
    const NoGrad no_grad;
    out = attention
              .forward(Var(x.q), Var(x.k), Var(x.v), {.causal = true, .kv_lengths = {}},
                       leaves_of(gates))
              .value();
  }
  std::vector<Tensor> gates_of(int64_t begin, int64_t end) const {
    std::vector<Tensor> some;
    for (const Tensor& gate : gates) some.push_back(positions(gate, begin, end));
    return some;
  }
  void extend(Decoder& decoder, int64_t count) const {
    const int64_t begin = decoder.length(), end = begin + count;
    decoder.extend(positions(x.k, begin, end), positions(x.v, begin, end),
                   positions(x.q, begin, end), gates_of(begin, end));
  }
  // The next position, answered, and its row of the forward.
  void expect_next(Decoder& decoder, double allowed) const {
    const int64_t at = decoder.length();
    const Tensor q = positions(x.q, at, at + 1), got = Tensor::full(q.shape(), bridge::kNaN),
                 want = positions(out, at, at + 1);
    decoder.step(q, positions(x.k, at, at + 1), positions(x.v, at, at + 1), got,
                 gates_of(at, at + 1));
    EXPECT_LE(largest_error(got, {want.data(), want.data() + want.size()}), allowed * largest(out))
        << "position " << at;
  }
};

// Whether the family is one of recurrences and the state is theirs: a number of levels at most
// where a cache has a row for each position.
bool is_recurrence(const VariantInfo& info) {
  constexpr std::array families = {"gated", "state space", "kernel", "recurrent"};
  if (std::find(families.begin(), families.end(), info.family) == families.end()) return false;
  const AttentionShape few = shape_of(1, 64), many = shape_of(1, kLong);
  if (info.why_no_decoder(many, Params(info.name, info.params))) return false;
  return built(info, many)->state_bytes(many) < 4 * built(info, few)->state_bytes(few);
}

std::vector<std::string> recurrences() {
  std::vector<std::string> names;
  for (const VariantInfo& info : all_variants())
    if (is_recurrence(info)) names.push_back(info.name);
  return names;
}

class RecurrentForms : public testing::TestWithParam<std::string> {};

TEST_P(RecurrentForms, AnswersFromTheStateAreTheForward) {
  const AttentionShape shape = shape_of(2, kShort);
  const auto attention = built(find_variant(GetParam()), shape);
  const Pass pass(*attention, shape);
  for (const int64_t count : {int64_t{1}, int64_t{7}, int64_t{16}, int64_t{64}, kShort - 1}) {
    SCOPED_TRACE(testing::Message() << count << " positions at once");
    const auto in_turns = attention->decoder(1, kShort);  // a step after each prefill
    while (in_turns->length() + count < kShort) {
      pass.extend(*in_turns, count);
      pass.expect_next(*in_turns, kAllowed);
    }
    const auto at_end = attention->decoder(1, kShort);  // prefills alone, then one step
    while (at_end->length() < kShort - 1)
      pass.extend(*at_end, std::min(count, kShort - 1 - at_end->length()));
    pass.expect_next(*at_end, kAllowed);
  }
}

attn_apply::Values values_of(const Tensor& t) {
  attn_apply::Values values;
  for (int i = 0; i < t.shape().rank(); i++) values.shape.push_back(t.dim(i));
  values.values.assign(t.data(), t.data() + t.size());
  return values;
}

TEST_P(RecurrentForms, FloatIsTheDoubleBuildAtLengthSixtyFiveThousand) {
  if (!attn_check::checks_in_double()) GTEST_SKIP() << "this build has no double twins";
  const AttentionShape shape = shape_of(1, kLong);
  const auto attention = built(find_variant(GetParam()), shape);
  const Pass pass(*attention, shape);
  attn_apply::Request request = {.variant = GetParam(),
                                 .params = {},
                                 .q = values_of(pass.x.q),
                                 .k = values_of(pass.x.k),
                                 .v = values_of(pass.x.v),
                                 .causal = true,
                                 .kv_lengths = {},
                                 .gates = {},
                                 .weights = {},
                                 .seed = 5,
                                 .grad_out = {}};
  for (size_t i = 0; i < pass.gates.size(); i++)
    request.gates[attention->gates()[i].name] = values_of(pass.gates[i]);
  for (const Weight& weight : attention->weights())
    request.weights[weight.name] = values_of(weight.value.value());
  const std::vector<double> want = attn_apply::run_double(request).out;
  EXPECT_LE(largest_error(pass.out, want), kAllowed * largest(pass.out));
}

INSTANTIATE_TEST_SUITE_P(Catalogue, RecurrentForms, testing::ValuesIn(recurrences()),
                         [](const auto& one) { return one.param; });

// Of those that a reader expects here, each is found.
TEST(RecurrentFormsList, HoldsTheRecurrences) {
  const std::vector<std::string> names = recurrences();
  for (const char* name : {"gla", "rwkv7", "log_linear", "mesa", "mamba", "lru", "linear"})
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  EXPECT_EQ(std::find(names.begin(), names.end(), "full"), names.end());
}

}  // namespace
}  // namespace attn::recurrent_forms_test
