// Figures from the first examples of two splits, and their three forms; see datasheet.h. Costs the
// generation of a few thousand examples and the task's shortcuts.
#include "harness/cli/datasheet.h"

#include <algorithm>
#include <bit>
#include <set>

#include "core/base/check.h"
#include "harness/cli/describe.h"
#include "tasks/catalog.h"
#include "tasks/shortcuts/ladder.h"

namespace attn::cli {
namespace {

constexpr uint64_t kSeed = 0;
constexpr size_t kListedLabels = 20;  // more classes are summed up

int64_t examples_for(const TaskShape& shape) {
  constexpr int64_t kPositions = 2'000'000, kLeast = 100, kMost = 1000;
  return std::clamp(kPositions / shape.length, kLeast, kMost);
}

void look_at(const Task& task, Datasheet& sheet) {
  int64_t total = 0, documents = 0;
  sheet.shortest = sheet.shape.length;
  for (int64_t i = 0; i < sheet.examples; i++) {
    const Example e = task.example(kSeed, Split::test, i);
    for (const int64_t size : {positions(e, sheet.shape), static_cast<int64_t>(e.second.size())}) {
      if (size == 0) continue;  // no second document
      sheet.shortest = std::min(sheet.shortest, size);
      sheet.longest = std::max(sheet.longest, size);
      total += size;
      documents++;
    }
    for (const int32_t label : e.target)
      if (label != kIgnoredLabel) sheet.labels[label]++;
    for (const float answer : e.wanted) {
      sheet.answers.mean += answer / static_cast<double>(sheet.examples);
      sheet.answers.variance += answer * answer / static_cast<double>(sheet.examples);
    }
    for (const int32_t distance : e.distances) {
      if (distance < 0) continue;
      const size_t bin = static_cast<size_t>(std::bit_width(static_cast<uint32_t>(distance)));
      if (sheet.distances.size() <= bin) sheet.distances.resize(bin + 1);
      sheet.distances[bin]++;
    }
  }
  sheet.answers.variance -= sheet.answers.mean * sheet.answers.mean;
  sheet.mean_length = static_cast<double>(total) / static_cast<double>(documents);
}

int64_t duplicates_of(const Task& task, int64_t count) {
  if (task.source()) return task.source()->duplicates();
  std::set<uint64_t> train;
  for (int64_t i = 0; i < std::min(count, task.train_examples()); i++)
    train.insert(input_checksum(task.any_example(kSeed, Split::train, i)));
  int64_t found = 0;
  for (int64_t i = 0; i < count; i++)
    found += train.count(input_checksum(task.any_example(kSeed, Split::test, i))) > 0;
  return found;
}

std::string answer_text(const TaskShape& shape) {
  if (shape.real) return "one number to predict";
  if (shape.outputs > 0)
    return fmt::format("an output of 1 to {} of {} tokens", shape.outputs, shape.classes);
  return fmt::format("{} classes, a label per {}", shape.classes,
                     shape.per_token ? "token" : "sequence");
}

std::string shape_text(const Datasheet& sheet) {
  const TaskShape& shape = sheet.shape;
  std::string lengths = sheet.shortest == sheet.longest
                            ? fmt::format("{}", sheet.longest)
                            : fmt::format("{} to {}, mean {:.0f}, at most {}", sheet.shortest,
                                          sheet.longest, sheet.mean_length, shape.length);
  const std::string inputs = shape.vocab ? fmt::format("vocabulary {}", shape.vocab)
                             : shape.channels > 1
                                 ? fmt::format("{} real values a position", shape.channels)
                                 : "real values";
  return fmt::format("length {}{}; {}; {}{}{}{}", lengths,
                     shape.pairs ? " of each of two documents" : "", inputs, answer_text(shape),
                     shape.causal ? "; causal" : "", shape.edges ? "; edges are given" : "",
                     shape.compressed ? "; all labels are read from the last position" : "");
}

std::string labels_text(const Datasheet& sheet) {
  if (sheet.shape.real)
    return fmt::format("real numbers, mean {:.3f}, variance {:.3f}", sheet.answers.mean,
                       sheet.answers.variance);
  int64_t total = 0, largest = 0;
  for (const auto& [label, count] : sheet.labels)
    total += count, largest = std::max(largest, count);
  const auto share = [&](int64_t count) {
    return static_cast<double>(count) / static_cast<double>(total);
  };
  if (sheet.labels.size() > kListedLabels)
    return fmt::format("{} different ones, the most frequent {:.3f}", sheet.labels.size(),
                       share(largest));
  std::string text;
  for (const auto& [label, count] : sheet.labels)
    text += fmt::format("{}{} {:.3f}", text.empty() ? "" : ", ", label, share(count));
  return text;
}

std::string bin_text(size_t bin) {
  if (bin <= 1) return fmt::format("{}", bin);
  return fmt::format("{}-{}", int64_t{1} << (bin - 1), (int64_t{1} << bin) - 1);
}

// A line a bin, from the first that is not empty; `bar` draws a share.
template <class Line>
std::string each_distance(const Datasheet& sheet, Line line) {
  int64_t total = 0;
  for (const int64_t count : sheet.distances) total += count;
  std::string text;
  bool begun = false;
  for (size_t bin = 0; bin < sheet.distances.size(); bin++) {
    begun = begun || sheet.distances[bin] > 0;
    if (begun)
      text += line(bin_text(bin),
                   static_cast<double>(sheet.distances[bin]) / static_cast<double>(total));
  }
  return text;
}

std::string splits_text(const Datasheet& sheet) {
  if (sheet.params.values().count("data") && !sheet.params.text("data").empty())
    return fmt::format("as the data have them; {} inputs that another split has too are left out",
                       sheet.duplicates);
  return fmt::format(
      "disjoint by a checksum of the input; without it, {} of {} test inputs would "
      "be among {} training inputs",
      sheet.duplicates, sheet.examples, sheet.examples);
}

std::string presets_text(const TaskInfo& info) {
  std::string text;
  for (const Preset& preset : info.presets) {
    std::string values;
    for (const auto& [name, value] : preset.values)
      values += fmt::format("{}{}={}", values.empty() ? "" : ",", name, to_string(value));
    text += fmt::format("  {:<18} {} ({})\n", preset.name, preset.help,
                        values.empty() ? "the defaults" : values);
  }
  return text;
}

std::string table_text(const std::string& text) {  // a bar would end the cell
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

}  // namespace

Datasheet datasheet_of(const TaskInfo& info, const std::map<std::string, ParamValue>& given) {
  Datasheet sheet;
  sheet.info = &info;
  sheet.params = info.resolve(given);
  const auto task = info.make(sheet.params);
  sheet.shape = task->shape();
  sheet.chance = task->chance();
  const int64_t wanted = examples_for(sheet.shape);
  sheet.examples = std::min(wanted, task->count(Split::test));
  sheet.fitted = ladder_examples(sheet.shape, std::min(wanted, task->count(Split::train)));
  look_at(*task, sheet);
  sheet.duplicates = duplicates_of(*task, sheet.examples);
  sheet.shortcuts = task->shortcuts(kSeed, sheet.fitted, sheet.examples);
  sheet.drawn = task->draw(task->example(kSeed, Split::train, 0));
  return sheet;
}

std::string plain_text_of(const Datasheet& sheet) {
  const TaskInfo& info = *sheet.info;
  std::string text = fmt::format(
      "{}: {}\nsource   {}\nmetric   {}, chance {:.3g}\nshape    {}\nlabels   {}\nsplits   {}\n",
      info.name, info.summary, info.source, info.metric, sheet.chance, shape_text(sheet),
      labels_text(sheet), splits_text(sheet));
  if (!info.control.empty()) text += control_text(info) + "\n";
  if (!info.solver.empty()) text += solver_text(info) + "\n";
  text += sheet.shape.bits ? "distances: tokens before the position of a label\n"
                           : "distances from a label's first to its last evidence, in positions\n";
  if (sheet.distances.empty()) text += "  unknown\n";
  text += each_distance(sheet, [](const std::string& bin, double share) {
    return fmt::format("  {:<12} {:.3f} {}\n", bin, share,
                       std::string(static_cast<size_t>(share * 40 + 0.5), '#'));
  });
  text += fmt::format("shortcuts, fitted on {} examples and scored on {}\n", sheet.fitted,
                      sheet.examples);
  for (const Shortcut& shortcut : sheet.shortcuts)
    text += fmt::format("  {:<28} {:.3f}\n", shortcut.name, shortcut.score);
  text += "parameters\n" + params_text(info.params_by_default());
  if (!info.presets.empty()) text += "presets\n" + presets_text(info);
  return text + "datasheet\n" + info.datasheet + "\nexample (seed 0, train, index 0)\n" +
         sheet.drawn + "\n";
}

std::string markdown_of(const Datasheet& sheet) {
  const TaskInfo& info = *sheet.info;
  std::string text = fmt::format("## {}\n\n{}. Source: {}.\n\n```text\n{}\n```\n\n", info.name,
                                 info.summary, info.source, info.datasheet);
  if (!info.control.empty()) text += "**" + control_text(info) + "**\n\n";
  if (!info.solver.empty()) text += "**" + solver_text(info) + "**\n\n";
  text += "| parameter | default | range | meaning |\n|---|---|---|---|\n";
  for (const ParamSpec& spec : info.params_by_default())
    text += fmt::format("| `{}` | {} | {} | {} |\n", spec.name, to_string(spec.value),
                        table_text(spec.range()), spec.help);
  text += "\n";
  for (const Preset& preset : info.presets) {
    text += fmt::format("- `{}[preset={}]`: {}", info.name, preset.name, preset.help);
    for (const auto& [name, value] : preset.values)
      text += fmt::format(", `{}={}`", name, to_string(value));
    text += "\n";
  }
  text += fmt::format(
      "\nMeasured at `{}[{}]`, on {} examples of a split (seed 0): {}. Labels: {}. Splits: {}.\n\n",
      info.name, sheet.params.str(), sheet.examples, shape_text(sheet), labels_text(sheet),
      splits_text(sheet));
  text += fmt::format("| scores without attention | {} |\n|---|---|\n| chance | {:.3f} |\n",
                      info.metric, sheet.chance);
  for (const Shortcut& shortcut : sheet.shortcuts)
    text += fmt::format("| {} | {:.3f} |\n", shortcut.name, shortcut.score);
  if (sheet.distances.empty()) return text + "\n";
  text += "\n| distance, in positions | share of labels |\n|---|---|\n";
  text += each_distance(sheet, [](const std::string& bin, double share) {
    return fmt::format("| {} | {:.3f} |\n", bin, share);
  });
  return text + "\n";
}

Json json_of(const Datasheet& sheet) {
  Json labels = Json::object(), distances = Json::array(), shortcuts = Json::object();
  for (const auto& [label, count] : sheet.labels) labels[std::to_string(label)] = count;
  for (size_t bin = 0; bin < sheet.distances.size(); bin++)
    distances.push_back({{"range", bin_text(bin)}, {"labels", sheet.distances[bin]}});
  for (const Shortcut& shortcut : sheet.shortcuts) shortcuts[shortcut.name] = shortcut.score;
  Json all = describe(*sheet.info);
  all.update(
      {{"shape",
        {{"length", sheet.shape.length},
         {"vocab", sheet.shape.vocab},
         {"classes", sheet.shape.classes},
         {"per_token", sheet.shape.per_token},
         {"causal", sheet.shape.causal},
         {"pairs", sheet.shape.pairs},
         {"channels", sheet.shape.channels},
         {"outputs", sheet.shape.outputs},
         {"real", sheet.shape.real},
         {"edges", sheet.shape.edges},
         {"compressed", sheet.shape.compressed},
         {"bits", sheet.shape.bits}}},
       {"chance", sheet.chance},
       {"examples", sheet.examples},
       {"lengths",
        {{"shortest", sheet.shortest}, {"mean", sheet.mean_length}, {"longest", sheet.longest}}},
       {"labels", labels},
       {"distances", distances},
       {"duplicates", sheet.duplicates},
       {"shortcuts", shortcuts}});
  return all;
}

std::string tasks_page() {
  std::string text =
      "# Tasks\n\n"
      "Written by `attnbench info tasks --markdown`; a test fails when it is stale. A score "
      "without\n"
      "attention is that of a cheap predictor fitted on training examples: `lift` in the rows is\n"
      "counted from the best of them. The distance of a label is the number of positions from the\n"
      "first evidence that it depends on to the last.\n\n";
  for (const TaskInfo& info : all_tasks()) {
    text += markdown_of(datasheet_of(info, {}));
  }
  text.pop_back();
  return text;
}

}  // namespace attn::cli
