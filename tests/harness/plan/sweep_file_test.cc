// Sweep files: what each key means, and every message of a file that is wrong.
#include "harness/plan/sweep_file.h"

#include <gtest/gtest.h>

#include "core/base/check.h"
#include "core/base/one_line.h"
#include "harness/plan/toml_text.h"
#include "tasks/catalog.h"
#include "tests/said.h"
#include "variants/catalog.h"

namespace attn::sweep_file_test {
namespace {

Profile read(std::string_view text) { return read_profile("mine.toml", text); }

std::string error_of(std::string_view text) {
  const std::string fault = fault_of([&] { read(text); });
  EXPECT_EQ(in_one_line(fault), fault);
  return fault;
}

TEST(SweepFile, SaysWhatASweepIs) {
  const Profile profile = read(R"(
# “Comments” may hold what they like: Größe, 注意.
name = "mine"
summary = "two sweeps"
version = 7
timeout = "1.5h"
[[sweep]]
measure = ["speed", "fidelity"]
variants = ["full", "linear"]
axes = { length = ["64:256:*2", 1000], causal = true, repetitions = 3, input_scale = 0.5 }
[[sweep]]
tasks = "mqar[pairs=[2,4]]"
training = { steps = [5, 6], positions = "rotary" }
tuning = "learning_rate=[1e-3,3e-3]"
)");
  EXPECT_EQ(profile.info.name, "mine");
  EXPECT_EQ(profile.info.summary, "two sweeps");
  EXPECT_EQ(profile.info.version, 7);
  EXPECT_EQ(profile.info.timeout_s, 5400);
  ASSERT_EQ(profile.sweeps.size(), 3u);
  const SubSweep &speed = profile.sweeps[0], &fidelity = profile.sweeps[1],
                 &trained = profile.sweeps[2];
  EXPECT_EQ(speed.measure, Measure::speed);
  EXPECT_EQ(speed.variants, (std::vector<std::string>{"full", "linear"}));
  EXPECT_EQ(speed.axes,
            (std::map<std::string, std::string>{
                {"length", "64:256:*2,1000"}, {"causal", "true"}, {"repetitions", "3"}}));
  EXPECT_EQ(fidelity.axes.count("repetitions"), 0u) << "an axis of speed alone";
  EXPECT_EQ(fidelity.axes.at("input_scale"), "0.5");
  EXPECT_EQ(trained.measure, Measure::accuracy) << "tasks ask for accuracy";
  EXPECT_EQ(trained.training, "steps=[5,6],positions=[rotary]");
  EXPECT_EQ(trained.tune, "learning_rate=[1e-3,3e-3]");
}

TEST(SweepFile, ALearningRateToTuneHasTheUsualValues) {
  const auto tuned = [](const std::string& text) {
    return read("[[sweep]]\ntasks = 'mqar'\ntuning = " + text).sweeps.at(0).tune;
  };
  EXPECT_EQ(tuned("'learning_rate'"), "learning_rate=[5e-4,1e-3,2e-3,4e-3,8e-3,16e-3]");
  EXPECT_EQ(tuned("'lr'"), tuned("'learning_rate'"));
  EXPECT_EQ(tuned("{ learning_rate = [1e-3, 2e-3] }"), "learning_rate=[0.001,0.002]");
}

TEST(SweepFile, TheFilesNameIsTheNameWhereNoneIsGiven) {
  EXPECT_EQ(read("[[sweep]]").info.name, "mine");
  EXPECT_EQ(read("extends = \"quick\"").info.name, "mine");
}

TEST(SweepFile, AStarStandsForEveryVariantThatIsNotNamed) {
  const auto specs =
      read("[[sweep]]\nvariants = [\"truncated[window=[8,16]]\", \"*\"]").sweeps.at(0).variants;
  ASSERT_EQ(specs.size(), all_variants().size());
  for (size_t i = 0; i < specs.size(); i++) {
    const std::string& name = all_variants()[i].name;
    EXPECT_EQ(specs[i], name == "truncated" ? "truncated[window=[8,16]]" : name);
  }
  EXPECT_EQ(read("[[sweep]]\ntasks = \"*\"").sweeps.at(0).tasks.size(), all_tasks().size());
}

TEST(SweepFile, DefaultsAreThoseOfTheirMeasure) {
  const Profile profile = read(R"(
[defaults.speed]
variants = ["full"]
axes = { length = 64, heads = 2 }
[defaults.accuracy]
training = "steps=5,width=32"
[[sweep]]
axes.heads = 4
[[sweep]]
measure = "memory"
[[sweep]]
tasks = ["mqar"]
training = { steps = 7 }
)");
  EXPECT_EQ(profile.sweeps.at(0).axes,
            (std::map<std::string, std::string>{{"length", "64"}, {"heads", "4"}}));
  EXPECT_EQ(profile.sweeps.at(0).variants, (std::vector<std::string>{"full"}));
  EXPECT_TRUE(profile.sweeps.at(1).axes.empty() && profile.sweeps.at(1).variants.empty());
  EXPECT_EQ(profile.sweeps.at(2).training, "steps=[7],width=[32]");
}

TEST(SweepFile, ExtendsAProfile) {
  const size_t quick = find_profile("quick").sweeps.size();
  const Profile more = read("extends = \"quick\"\n[[sweep]]\nvariants = \"linear\"");
  ASSERT_EQ(more.sweeps.size(), quick + 1);
  EXPECT_EQ(more.sweeps.back().variants, (std::vector<std::string>{"linear"}));
  const Profile other =
      read("extends = \"quick\"\nreplace = [\"accuracy\", \"speed\"]\n[[sweep]]\ntasks = \"mqar\"");
  size_t kept = 0;
  for (const SubSweep& sweep : other.sweeps) {
    kept += sweep.measure != Measure::accuracy;
    EXPECT_NE(sweep.measure, Measure::speed);
  }
  EXPECT_EQ(other.sweeps.size(), kept + 1);
  EXPECT_EQ(read("extends = \"long\"").info.timeout_s, 1800) << "the profile's, unless given";
}

TEST(SweepFile, WhatIsWrongIsNamedWithItsLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "mine.toml:1: there is no sweep; write a [[sweep]] block, or extends = \"PROFILE\""},
      {"sweeps = 1", "mine.toml:1: unknown key 'sweeps' in a sweep file; nearest is 'sweep'"},
      {"[sweep]", "mine.toml:1: sweep is one table; write [[sweep]], with two brackets"},
      {"[[sweep]]\nvariant = 1",
       "mine.toml:2: unknown key 'variant' in [[sweep]]; nearest is "
       "'variants' (known: measure, variants"},
      {"[[sweep]]\nlenght = 1",
       "mine.toml:2: unknown key 'lenght' in [[sweep]]; nearest is "
       "'axes.length'"},
      {"[[sweep]]\nlength = 1", "mine.toml:2: 'length' is an axis; write axes.length = VALUES"},
      {"[[sweep]]\naxes.lenght = 1",
       "mine.toml:2: unknown key 'lenght' in axes; nearest is "
       "'length'"},
      {"[[sweep]]\naxes = 3", "mine.toml:2: axes is a number; expected a table"},
      {"[[sweep]]\naxes.length = 0", "mine.toml:2: axis: length=0 is not valid; expected int in 1"},
      {"[[sweep]]\naxes.length = '64:x'", "mine.toml:2: axis length: '64:x' is no range"},
      {"[[sweep]]\naxes.length = []", "mine.toml:2: axis length is an empty list"},
      {"[[sweep]]\naxes.length = ''", "mine.toml:2: axis length is an empty text"},
      {"[[sweep]]\naxes.seed = 1979-05-27", "mine.toml:2: axis seed is a date or a time"},
      {"[[sweep]]\nmeasure = 'fidelity'\naxes.input_scale = inf",
       "mine.toml:3: axis: input_scale=inf is not valid"},
      {"[[sweep]]\ninput = 1", "mine.toml:2: 'input' is an axis"},
      {"[[sweep]]\naxes.input = 'needle'",
       "mine.toml:2: axis input does not apply to measure "
       "speed"},
      {"[[sweep]]\nmeasure = 'accuracy'\naxes.length = 64",
       "mine.toml:3: axis length does not apply to measure accuracy; a task's length is"},
      {"[[sweep]]\nmeasure = 'speedy'",
       "mine.toml:2: unknown measure 'speedy'; nearest is 'speed'"},
      {"[[sweep]]\nvariants = [\n'full',\n'lienar']",
       "mine.toml:4: unknown variant 'lienar'; "
       "nearest is 'linear'"},
      {"[[sweep]]\nvariants = 3",
       "mine.toml:2: variants is a number, 3; expected a text in quotes"},
      {"[[sweep]]\nvariants = 'mqar'", "mine.toml:2: 'mqar' is a task, not a variant"},
      {"[[sweep]]\nvariants = 'linformer[rnk=3]'",
       "mine.toml:2: linformer: unknown parameter "
       "'rnk'; nearest is 'rank'"},
      {"[[sweep]]\ntasks = 'mqra'", "mine.toml:2: unknown task 'mqra'; nearest is 'mqar'"},
      {"[[sweep]]\nmeasure = 'memory'\ntasks = 'mqar'",
       "mine.toml:3: tasks does not apply to "
       "measure memory; add accuracy"},
      {"[[sweep]]\ntasks = 'mqar'\ntraining = { stepz = 3 }",
       "mine.toml:3: training: unknown parameter 'stepz'; nearest is 'steps'"},
      {"[[sweep]]\ntasks = 'mqar'\ntuning = 'learning_rate=[1e-3,0.001]'",
       "mine.toml:1: tune learning_rate=1e-3,0.001 leaves nothing to choose"},
      {"[[sweep]]\nzip = ['heads', 'head_dim']",
       "mine.toml:2: zip: axis heads has no values here; "
       "write axes.heads = VALUES"},
      {"[[sweep]]\naxes.heads = [1,2]\nzip = 'heads'",
       "mine.toml:3: zip: heads alone goes in step "
       "with nothing; name two axes"},
      {"[[sweep]]\naxes.heads = [1,2]\naxes.batch = [1,2]\nzip = ['heads', 'batch', 'heads']",
       "mine.toml:4: zip: axis heads stands there twice"},
      {"[[sweep]]\naxes.heads = [1,2]\naxes.head_dim = [1,2,3]\nzip = ['heads', 'head_dim']",
       "mine.toml:4: zip: heads has 2 values and head_dim has 3; axes of a zip have equally many"},
      {"[[sweep]]\nzip = ['headz', 'batch']",
       "mine.toml:2: unknown axis 'headz'; nearest is "
       "'heads'"},
      {"[[sweep]]\nexclude = [{ lengths = 3 }]",
       "mine.toml:2: unknown key 'lengths' in exclude; "
       "nearest is 'length'"},
      {"[[sweep]]\nexclude = [{ length = '>x' }]", "mine.toml:2: axis: length=x is not valid"},
      {"[[sweep]]\nexclude = [{ mode = '<train' }]",
       "mine.toml:2: axis mode: '<' compares what is "
       "no number"},
      {"[[sweep]]\ninclude = [{}]", "mine.toml:2: a condition of include is empty"},
      {"[[sweep]]\ninclude = 3", "mine.toml:2: include is a number; expected a table"},
      {"[[sweep]]\nexclude = [{ variant = 'lienar' }]", "mine.toml:2: unknown variant 'lienar'"},
      {"[[sweep]]\nexclude = [{ variant = 'full[kernl=3]' }]",
       "mine.toml:2: full: unknown "
       "parameter 'kernl'"},
      {"[[sweep]]\nexclude = [{ task = 'mqar[preset=none]' }]",
       "mine.toml:2: mqar: preset=none is "
       "not valid"},
      {"[[sweep]]\nexclude = [{ training = 'stepz=3' }]",
       "mine.toml:2: training: unknown parameter "
       "'stepz'"},
      {"extends = 'quik'", "mine.toml:1: unknown profile 'quik'; nearest is 'quick'"},
      {"replace = 'speed'\n[[sweep]]", "mine.toml:1: replace needs extends"},
      {"[defaults]\nspeeds = {}",
       "mine.toml:2: unknown key 'speeds' in defaults; nearest is "
       "'speed'"},
      {"[defaults.memory]\nzip = []", "mine.toml:2: unknown key 'zip' in defaults.memory"},
      {"[defaults.memory]\ntraining = 'steps=3'",
       "mine.toml:2: training does not apply to measure "
       "memory"},
      {"timeout = '3d'", "mine.toml:1: '3d' is not a time; write 90s, 10m or 1.5h"},
      {"version = 0", "mine.toml:1: sweep file: version=0 is not valid"},
      {"version = '1'", "mine.toml:1: version is a text; expected a number"},
      {"name = 3", "mine.toml:1: name is a number, 3; expected a text in quotes"},
      {"a = 1\nb = ", "mine.toml:2: "},
      {"a = 1\na = 2", "mine.toml:2: "},
      {"[[[", "mine.toml:1: "},
  };
  for (const auto& [text, expected] : cases)
    EXPECT_TRUE(error_of(text).starts_with(expected)) << text << "\n  " << error_of(text);
}

// toml++ 3.3 has undefined behaviour for most of these letters.
TEST(SweepFile, CharactersBeyondAsciiStandInCommentsAlone) {
  EXPECT_EQ(error_of("# \xC3\xA9\n[[sweep]] # \xD1\x91"), "");
  EXPECT_EQ(error_of("\xEF\xBB\xBF[[sweep]]"), "") << "a byte order mark";
  EXPECT_EQ(error_of("[[sweep]]\nvariants = '\xC3\xA9'"),
            "mine.toml:2: '\xC3\xA9' stands outside a comment; names and values of a sweep file "
            "are ASCII");
  EXPECT_TRUE(error_of("\xC4\x80 = 1").starts_with("mine.toml:1: '\xC4\x80' stands outside"));
  EXPECT_TRUE(error_of("a = \"# \xC3\xA9\"").starts_with("mine.toml:1: '\xC3\xA9' stands outside"));
  EXPECT_TRUE(error_of("a = '''\n' # \xC3\xA9'''").starts_with("mine.toml:2: '\xC3\xA9'"));
  EXPECT_TRUE(error_of("\xFF\xFE[").starts_with("mine.toml:1: '\\xff' stands outside"));
  EXPECT_TRUE(
      error_of("[[sweep]]\n# \x01").starts_with("mine.toml:2: the control character \\x01"));
  EXPECT_TRUE(error_of("a\r= 1").starts_with("mine.toml:1: the control character \\x0d"));
  EXPECT_EQ(error_of("[[sweep]]\r\nvariants = 'full'\r\n"), "");
}

TEST(SweepFile, DeepNestingAndLongTextsAreOneLine) {
  const auto repeated = [](std::string_view part, int times) {
    std::string text;
    for (int i = 0; i < times; i++) text += part;
    return text;
  };
  for (const char* part : {"[", "{", "a.", "a.a.a.a.a.a.\n", "[a.", "{a=", "\"", "'''", "\\", "[["})
    for (const char* before : {"", "a = ", "[[sweep]]\naxes = ", "["}) {
      const std::string error = error_of(before + repeated(part, 100'000));
      EXPECT_TRUE(error.starts_with("mine.toml:")) << part << ": " << error.substr(0, 200);
      EXPECT_LT(error.size(), 1000u);
    }
  EXPECT_EQ(error_of(repeated(" ", kMostTomlBytes + 1)),
            "mine.toml: a sweep file has at most 262144 bytes");
}

}  // namespace
}  // namespace attn::sweep_file_test
