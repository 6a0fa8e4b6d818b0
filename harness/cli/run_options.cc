// See run_options.h.
#include "harness/cli/run_options.h"

#include <algorithm>

#include "core/base/check.h"
#include "harness/train/train.h"

namespace attn::cli {
namespace {

std::string axis_help(const AxisInfo& axis) {
  const ParamSpec& spec = axis.spec;
  std::vector<std::string> single;  // pairs such as int8/int4 follow from them; the help says how
  for (const std::string& choice : spec.choices)
    if (choice.find('/') == std::string::npos && !choice.empty()) single.push_back(choice);
  std::string values = single.empty() ? "" : join(single) + "; ";
  if (std::holds_alternative<bool>(spec.value)) values = "false,true; ";
  const auto* const number = std::get_if<double>(&spec.value);
  const bool is_none = number && *number < spec.min;  // not asked for
  const std::string value = is_none ? "" : to_string(spec.value);
  return fmt::format(
      "{}{}{}{}", values, spec.help, value.empty() ? "" : "; default " + value,
      axis.measures.size() == 1 ? fmt::format(" ({} alone)", name_of(axis.measures[0])) : "");
}

// "steps 2000, batch 32, …": the training settings that are changed most.
std::string training_help() {
  std::string text;
  for (const char* name : {"steps", "batch", "learning_rate", "layers", "width", "heads"})
    for (const ParamSpec& spec : training_params())
      if (spec.name == name)
        text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, to_string(spec.value));
  return text;
}

}  // namespace

std::string option_of(const AxisInfo& axis) {
  std::string name = axis.spec.name;
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::vector<Option> run_options() {
  std::vector<Option> options = {
      {"variant", 'v', "SPEC",
       "repeatable; name or name[param=value,param=[value,value]]; default: all, in a profile its "
       "own",
       true},
      {"task", 't', "SPEC",
       "repeatable; mqar, mqar[preset=small] or mqar[pairs=[4,8]]; no level named: standard", true},
      plugin_option(),
      {"measure", 0, "LIST",
       "speed,memory,accuracy,fidelity,reach; default speed, with -t accuracy, with a profile all "
       "of its"},
  };
  for (const AxisInfo& axis : all_axes())
    options.push_back({option_of(axis), 0, "LIST", axis_help(axis)});
  const std::vector<Option> others = {
      {"shape", 0, "LIST",
       "layers of models that people run, with their heads and, without -v, their variants, causal "
       "unless told: "
       "llama3-8b,gemma3-4b (attnbench list shapes), or a FILE.toml of one's own"},
      {"tokens", 0, "N", "constant tokens: the batch of each length is N / length; 16k is 16384"},
      {"block", 0, "LIST",
       "mixer,paper: what stands around a mixer in a layer: the projections of multi-head "
       "attention, or the paper's own layer; default mixer; also as a parameter, "
       "mamba2[block=paper]"},
      {"train", 0, "LIST",
       fmt::format("accuracy: training settings, or the training object of a row; defaults {}, … "
                   "(attnbench info training)",
                   training_help())},
      {"tune", 0, "LIST",
       "accuracy: choose among settings on validation, 'learning_rate=[1e-3,3e-3]'; learning_rate "
       "alone: six from 5e-4 to 16e-3"},
      {"tune-by", 0, "HOW",
       "grid (default): each choice with each seed; halving: short trainings of one seed, of which "
       "the better half goes on, then all seeds at the choice"},
      {"test-with", 0, "LIST",
       "accuracy: score the learned weights with other parameters of the variant too, "
       "'rounds=[1,2];rounds=8,chunk=32', or by decoding from a cache of a type, "
       "'kv_dtype=[int8,int8/int4]', or behind a prompt, 'evict=snapkv,budget=4,prompt=8'"},
      {"test-on", 0, "LIST",
       "accuracy: score the learned weights on the task with other parameters too, "
       "'length=[128,256]'"},
      {"profile", 0, "NAME",
       "a named sweep (attnbench list profiles); flags override its axes, as those of a sweep "
       "file"},
      {"config", 'c', "FILE", "the same options as 'name = value' lines; flags win"},
      {"output", 'o', "FILE",
       "default results/<UTC time>-<profile>.jsonl; -: standard output; {machine} in it becomes "
       "the "
       "id of this machine and build"},
      {"dry-run", 'n', "",
       "print the cells with forecast time and memory (--format too); run nothing"},
      {"pilots", 0, "", "with --dry-run: run a few steps of each training, to forecast better"},
      {"yes", 'y', "", "do not ask before a sweep that is forecast to take over 30 minutes"},
      {"resume", 0, "=BOOL", "go on with an existing file, or widen it; default true"},
      {"held", 0, "FILE",
       "accuracy: repeatable; a training that this rows file holds is not run again, whichever "
       "machine its row is of; attnbench merge joins the two files",
       true},
      {"retry", 0, "LIST",
       "measure such rows of an existing file again: failed (every failure), noisy; or diverged, "
       "timeout, oom, skipped"},
      {"force", 'f', "", "start over, dropping an existing file"},
      {"jobs", 'j', "N", "accuracy cells at a time; default: one a core"},
      {"timeout", 0, "TIME", "of a cell; 90s, 10m (default, unless the profile allows more), 1h"},
      {"precision", 0, "SHARE",
       "speed: visit each cell until the 95 % interval of its median reaches that little to either "
       "side; 2%"},
      {"find", 0, "WHAT",
       "crossing: measure few lengths between the first and the last (default 64,16384), then more "
       "around those where a variant and exact attention of either kernel change places, until "
       "each crossing is known to 5 %; speed and memory"},
      {"max-time", 0, "TIME",
       "speed: of the visits of a cell; with --precision default 60s; alone: goes on until as many "
       "visits as usual were not disturbed, and counts these"},
      {"pin", 0, "LIST",
       "speed: processors that threads stay on; auto (default: a core for each), none, or 2-3"},
      {"breakdown", 0, "",
       "speed: tell too where the time of a pass goes: packing, products, softmax, masks, …"},
      {"max-memory", 0, "SIZE", "of a cell; 512M, 8G; default: what is free"},
      {"shard", 0, "i/n",
       "only the cells of this part, 0 <= i < n; parts take about the same time; */n with "
       "--dry-run: "
       "all of them"},
      {"fail-fast", 0, "", "stop at the first cell that fails"},
      {"format", 0, "KIND", "table (default), json, csv or md"},
      {"ledger", 0, "",
       "print the parity ledger too: parameters, FLOPs and kernels of each variant"},
      {"color", 0, "WHEN", "auto (default), always or never"},
      {"progress", 0, "WHEN", "auto (default) or none"},
      {"verbose", 0, "", "a line a cell, rather than a few a phase"},
      {"quiet", 'q', "", "no progress and no closing lines"}};
  options.insert(options.end(), others.begin(), others.end());
  return options;
}

}  // namespace attn::cli
