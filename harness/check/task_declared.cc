// Checks of what a task declares before any example: its shape, its metric and its presets. Costs
// three examples of each preset.
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "harness/check/task_checks.h"

namespace attn {
namespace {

auto fields(const TaskShape& s) {
  return std::tuple(s.length, s.vocab, s.classes, s.per_token, s.causal, s.pairs, s.channels,
                    s.outputs, s.real, s.edges, s.compressed, s.bits);
}

const char* metric_of(const TaskShape& shape) {
  if (shape.real) return "mean_squared_error";
  if (shape.bits) return "bits_per_token";
  return shape.outputs > 0 ? "exact_match" : "accuracy";
}

// What a preset makes of the task: inputs of different presets must differ.
struct PresetDraw {
  std::string name;
  std::map<std::string, ParamValue> values;
  std::string drawn;
};

PresetDraw draw_preset(const TaskInfo& info, const std::string& preset) {
  constexpr int64_t kExamples = 3;
  const std::map<std::string, ParamValue> given = {{"preset", preset}};
  const auto task = info.build(given);
  PresetDraw made{preset, task->params().values(), ""};
  made.values.erase("train_examples");  // changes no example
  const TaskShape s = task->shape();
  made.drawn = fmt::format("{} {} {}", s.length, s.vocab, s.classes);
  for (int64_t i = 0; i < kExamples; i++)
    made.drawn += fmt::format(" {}", input_checksum(task->any_example(1, Split::train, i)));
  return made;
}

}  // namespace

void check_shape(const TaskSubject& subject, Verdict& verdict) {
  const TaskShape s = subject.task().shape();
  if (fields(s) != fields(subject.make()->shape()) || fields(s) != fields(subject.task().shape()))
    verdict.require(false, "two tasks with the same parameters have different shapes");
  const std::string& metric = subject.info().metric;
  verdict.require(metric == metric_of(s), "the metric is {}, that of such answers is {}", metric,
                  metric_of(s));
  verdict.require(s.length >= 1 && s.channels >= 1 && s.vocab >= 0 && s.outputs >= 0,
                  "length {}, channels {}, vocab {}, outputs {}", s.length, s.channels, s.vocab,
                  s.outputs);
  verdict.require(s.real ? s.classes == 1 : s.classes >= 2, "{} classes to choose from", s.classes);
  verdict.require(s.vocab == 0 || (s.vocab >= 2 && s.channels == 1),
                  "a vocabulary of {} and {} channels: tokens have one, and 0 is padding", s.vocab,
                  s.channels);
  const int kinds = s.per_token + (s.outputs > 0) + s.real;
  if (kinds > 1)
    verdict.require(false, "a label per position, an output sequence, a number: one of them");
  if (s.compressed && !s.per_token) verdict.require(false, "compressed needs a label per position");
  if (s.bits && (!s.per_token || s.compressed || s.edges))
    verdict.require(false, "bits need a label per position, read from that position, and no edges");
  if (s.pairs && (kinds > 0 || s.edges))
    verdict.require(false, "two documents have one label and no edges");
}

// A preset can be made, and what it changes is read.
void check_presets(const TaskSubject& subject, Verdict& verdict) {
  std::vector<PresetDraw> all;
  for (const Preset& preset : subject.info().presets) {
    all.push_back(draw_preset(subject.info(), preset.name));
    for (const PresetDraw& other : all)
      if (other.values != all.back().values && other.drawn == all.back().drawn)
        verdict.require(false, "presets {} and {} have different parameters and the same examples",
                        other.name, preset.name);
  }
  if (!verdict.failed())
    verdict.require(true, "each of {} presets gives other examples", all.size());
  if (all.empty()) verdict.skip("no presets");
}

}  // namespace attn
