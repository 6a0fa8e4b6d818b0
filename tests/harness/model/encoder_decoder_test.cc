// The encoder and decoder against the same model written out in double loops, with what may not
// matter to it (padding, the future), its gradients against central differences, and teacher
// forcing.
#include "harness/model/encoder_decoder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/harness/model/written_out.h"
#include "tests/harness/train/toy.h"

namespace attn::encoder_decoder_test {
namespace {

using namespace written_out;

constexpr size_t kHeads = 2;

EncoderDecoderConfig tiny(Norm norm = Norm::pre) {
  static const VariantInfo plain = [] {
    VariantInfo info = toy::variant<toy::Plain>("plain");
    info.traits.cross = info.traits.rowwise = true;
    return info;
  }();
  EncoderDecoderConfig config{.model = toy::tiny(), .outputs = 4};
  config.model.layer.variant = &plain;
  config.model.layer.norm = norm;
  return config;
}

// Sources of 3 and 5 tokens, outputs of 4 and 1.
Batch batch() {
  return {.size = 2,
          .length = 5,
          .tokens = {1, 2, 3, 0, 0, 6, 5, 2, 2, 1},
          .values = {},
          .lengths = {3, 5},
          .targets = {2, 0, 1, 1, 2, -1, -1, -1}};
}

// Gains of one and biases of zero would hide a missing one.
Named scattered(const EncoderDecoder& model) {
  Named named;
  for (const Weight& weight : model.weights()) {
    if (weight.value.shape().rank() == 1)
      weight.value.set_value(Tensor::normal(weight.value.shape(), rng(1, weight.name)));
    EXPECT_TRUE(named.emplace(weight.name, weight.value.value()).second) << weight.name;
  }
  return named;
}

Rows written_out_logits(const Named& all, bool pre, const std::vector<int32_t>& source,
                        const std::vector<int32_t>& inputs) {
  const auto everything = [](size_t, size_t) { return true; };
  const auto past = [](size_t query, size_t key) { return key <= query; };
  Rows memory, x;
  for (const bool decoder : {false, true}) {
    const Named w = part(all, decoder ? "decoder." : "encoder.");
    Rows& y = decoder ? x : memory;
    y = embedded(w, decoder ? inputs : source);
    for (const char* layer : {"layers.0.", "layers.1."}) {
      const Named own = part(w, layer);
      y = around(y, own, "attention_norm", pre, [&](const Rows& z) {
        return attended(z, z, own, "", kHeads, decoder ? Sees(past) : Sees(everything));
      });
      if (decoder)
        y = around(y, own, "cross.attention_norm", pre, [&](const Rows& z) {
          return attended(z, memory, own, "cross.", kHeads, everything);
        });
      y = around(y, own, "feed_forward_norm", pre,
                 [&](const Rows& z) { return fed_forward(z, own, ""); });
    }
    if (pre) y = normed(y, w, "norm");
  }
  return times(x, all.at("decoder.head"), &all.at("decoder.head_bias"));
}

// Some hundred roundings of numbers of size 10.
constexpr double kRounding = 1000 * static_cast<double>(kEpsilon);

TEST(EncoderDecoder, EqualsTheModelWrittenOut) {
  for (const Norm norm : {Norm::pre, Norm::post}) {
    const EncoderDecoder model(tiny(norm));
    const Named weights = scattered(model);
    const Batch given = batch();
    const EncoderDecoder::Forced forced = model.forced(given);
    const Tensor logits = model.decode(model.encode(given), forced.inputs).value();
    ASSERT_EQ(logits.shape(), (Shape{2, 5, 4}));
    for (size_t b = 0; b < 2; ++b) {
      const auto source = given.tokens.begin() + static_cast<ptrdiff_t>(5 * b);
      const auto inputs = forced.inputs.begin() + static_cast<ptrdiff_t>(5 * b);
      const Rows expected = written_out_logits(
          weights, norm == Norm::pre, {source, source + given.lengths[b]}, {inputs, inputs + 5});
      for (size_t i = 0; i < 5; ++i)
        for (size_t c = 0; c < 4; ++c)
          EXPECT_NEAR(at(logits, (5 * b + i) * 4 + c), expected[i][c], kRounding)
              << b << " " << i << " " << c;
    }
  }
}

TEST(EncoderDecoder, TeacherForcingShiftsTheTargetsBehindAStart) {
  const EncoderDecoder model(tiny());
  const EncoderDecoder::Forced forced = model.forced(batch());
  EXPECT_EQ(model.end_token(), 3);
  EXPECT_EQ(model.start_token(), 4);
  EXPECT_EQ(forced.inputs, (std::vector<int32_t>{4, 2, 0, 1, 1, 4, 2, 3, 3, 3}));
  EXPECT_EQ(forced.labels, (std::vector<int32_t>{2, 0, 1, 1, 3, 2, 3, -1, -1, -1}));
}

double loss_of(const EncoderDecoder& model) {
  const NoGrad no_grad;
  const EncoderDecoder::Forced forced = model.forced(batch());
  return static_cast<double>(
      cross_entropy(model.decode(model.encode(batch()), forced.inputs), forced.labels).value()[0]);
}

TEST(EncoderDecoder, GradientsOfAllWeightsAreDifferencesOfTheLoss) {
  const EncoderDecoder model(tiny());
  scattered(model);
  const EncoderDecoder::Forced forced = model.forced(batch());
  cross_entropy(model.decode(model.encode(batch()), forced.inputs), forced.labels).backward();
  // The step balances truncation (step²) against rounding (epsilon / step) of a loss of size 1.
  const double step = std::cbrt(static_cast<double>(kEpsilon)),
               tolerance = (kIsDouble ? 100 : 1000) * step * step;
  for (const Weight& weight : model.weights()) {
    ASSERT_TRUE(weight.value.grad().defined()) << weight.name;
    const Tensor& value = weight.value.value();
    for (int64_t i = 0; i < value.size(); ++i) {
      const real before = value[i];
      value[i] = before + static_cast<real>(step);
      const double above = loss_of(model);
      value[i] = before - static_cast<real>(step);
      const double below = loss_of(model);
      value[i] = before;
      const double expected = (above - below) / (2 * step);
      EXPECT_NEAR(static_cast<double>(weight.value.grad()[i]), expected, tolerance)
          << weight.name << "[" << i << "]";
    }
  }
}

TEST(EncoderDecoder, SeesNoLaterOutput) {
  const EncoderDecoder model(tiny());
  const EncoderDecoder::Memory memory = model.encode(batch());
  std::vector<int32_t> inputs = model.forced(batch()).inputs;
  const Tensor before = model.decode(memory, inputs).value();
  inputs[2] = 1;
  const Tensor after = model.decode(memory, inputs).value();
  for (int64_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(before[i] != after[i], i >= 2 * 4 && i < 5 * 4) << i;
}

TEST(EncoderDecoder, PaddingOfTheSourceChangesNothing) {
  const EncoderDecoder model(tiny());
  const std::vector<int32_t> inputs = model.forced(batch()).inputs;
  const Tensor expected = model.decode(model.encode(batch()), inputs).value();
  Batch garbage = batch();
  garbage.tokens[3] = 6, garbage.tokens[4] = 2;
  const Tensor same = model.decode(model.encode(garbage), inputs).value();
  const Batch alone{.size = 1, .length = 3, .tokens = {1, 2, 3}};
  const Tensor shorter =
      model.decode(model.encode(alone), {inputs.begin(), inputs.begin() + 5}).value();
  for (int64_t i = 0; i < shorter.size(); ++i) {
    EXPECT_EQ(same[i], expected[i]) << i;
    EXPECT_NEAR(shorter[i], expected[i], kRounding) << i;
  }
}

TEST(EncoderDecoder, DropsInBothInputsAndInEveryBlockWhenGivenAStream) {
  EncoderDecoderConfig config = tiny();
  const std::vector<int32_t> inputs = EncoderDecoder(config).forced(batch()).inputs;
  const auto logits = [&](const EncoderDecoder& model, Rng* dropout) {
    return model.decode(model.encode(batch(), dropout), inputs, dropout).value();
  };
  const Tensor expected = logits(EncoderDecoder(config), nullptr);
  config.model.layer.dropout = 0.5;
  const EncoderDecoder model(config);
  EXPECT_EQ(logits(model, nullptr)[0], expected[0]);
  Rng stream = rng(1, "dropout"), counted = rng(1, "dropout");
  EXPECT_NE(logits(model, &stream)[0], expected[0]);
  for (int drops = 0; drops < 2 + 2 * 2 + 2 * 3; ++drops)  // all of the same shape
    dropout(Var(Tensor::zeros({2, 5, 4})), 0.5, counted);
  EXPECT_EQ(stream.bits(), counted.bits());
}

// What cannot be causal stands in the encoder alone, what is not rowwise not across.
TEST(EncoderDecoder, TheExactVariantStandsWhereTheOwnCannot) {
  using Places = std::vector<std::string>;
  const VariantInfo exact = toy::variant<toy::Plain>("exact");
  const auto places = [&](bool causal, bool cross, bool rowwise) {
    VariantInfo own = toy::variant<toy::Averaging>("own", causal);
    own.traits.cross = cross, own.traits.rowwise = rowwise;
    EncoderDecoderConfig config = tiny();
    config.exact = &exact;
    config.model.layer.variant = &own;
    const EncoderDecoder model(config);
    Places built;  // where the own weight of `own` is found
    std::set<std::string> names;
    for (const Weight& weight : model.weights()) names.insert(weight.name);
    for (const auto& [place, name] :
         std::map<std::string, std::string>{{"encoder", "encoder.layers.1.attention.gain"},
                                            {"decoder", "decoder.layers.1.attention.gain"},
                                            {"cross", "decoder.layers.1.cross.attention.gain"}})
      if (names.count(name)) built.push_back(place);
    const Places reported = model.places();
    EXPECT_EQ(std::set<std::string>(built.begin(), built.end()),
              std::set<std::string>(reported.begin(), reported.end()));
    return reported;
  };
  EXPECT_EQ(places(true, true, true), (Places{"encoder", "decoder", "cross"}));
  EXPECT_EQ(places(true, true, false), (Places{"encoder", "decoder"}));
  EXPECT_EQ(places(true, false, true), (Places{"encoder", "decoder"}));
  EXPECT_EQ(places(false, true, true), (Places{"encoder", "cross"}));
  EXPECT_EQ(places(false, false, false), (Places{"encoder"}));
}

TEST(EncoderDecoder, RefusesWhatDoesNotFit) {
  EncoderDecoderConfig config = tiny();
  const VariantInfo backward = toy::variant<toy::Plain>("backward", false);
  config.model.layer.variant = &backward;
  EXPECT_THROW(EncoderDecoder{config}, Error);  // and no exact one
  config = tiny();
  config.outputs = 0;
  EXPECT_THROW(EncoderDecoder{config}, Error);
  config = tiny();
  config.outputs = 3;
  EXPECT_THROW(EncoderDecoder(config).forced(batch()), Error);
  Batch longer = batch();
  longer.lengths = {3};
  EXPECT_THROW(EncoderDecoder(tiny()).encode(longer), Error);
}

}  // namespace
}  // namespace attn::encoder_decoder_test
