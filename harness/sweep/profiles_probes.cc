// The profiles of small probes, and of every variant: data only. Raise a profile's version when its
// cells change.
#include "harness/sweep/profiles.h"
#include "variants/catalog.h"

namespace attn {

// One seed, two layers, a recipe a task with which `full` reaches its known score within ten
// minutes of a core; the other variants get the same steps. Lengths beyond that of training are
// scored where a model is defined there (`stretch`).
Profile probes_profile() {
  const auto trained = [](std::string task, std::string training,
                          std::vector<std::string> variants = {}) {
    if (variants.empty()) variants = first_variants();
    return SubSweep{
        Measure::accuracy, std::move(variants), {std::move(task)}, {}, std::move(training)};
  };
  // The slope of recall over the size of the state: a head's state is head_dim squared in `linear`.
  const std::vector<std::string> states = {"full", "linear", "truncated[window=8]",
                                           "performer[features=[16,64,256]]"};
  return {
      {.name = "probes",
       .summary = "recall, copying, counting, tagging, output sequences, length generalisation, "
                  "recall against state size; hours on 2 cores, a task at a time with -t",
       .version = 1,
       .timeout_s = 3600},
      {
          trained("mqar[preset=small]", "steps=1500,learning_rate=3e-3,heads=[1,2,4,8,16]", states),
          trained("mqar[vocab=256,length=128,pairs=8,power=1]", "steps=2500"),
          trained("induction", "steps=1500,target=0.998"),
          trained("induction[length=32]", "steps=1500,positions=[sinusoidal,none],stretch=8"),
          trained("copy", "steps=400,batch=16,learning_rate=3e-3,warmup=50,target=0.999"),
          trained("selective_copy",
                  "steps=9000,batch=16,heads=4,feed_forward=256,learning_rate=3e-3,eval_every=500,"
                  "target=0.97"),
          trained("needle[preset=small]", "steps=3000,learning_rate=3e-3,target=0.998",
                  {"full", "truncated[window=16]", "linformer", "performer", "linear"}),
          trained("majority", "steps=1500,target=0.999"),
          trained("parity", "steps=1500"),
          trained("adding", "steps=1200"),
          trained("fuzzy_recall", "steps=2200,heads=4"),
          trained("noisy_recall", "steps=1200"),
          trained("compression", "steps=2500,width=128,feed_forward=256"),
          trained("memorization", "steps=1500,target=0.999"),
          trained(
              "frames",
              "steps=3000,batch=8,heads=4,positions=sinusoidal,learning_rate=4e-3,eval_every=250,"
              "validation_examples=64,test_examples=256",
              {"full", "truncated[window=16]", "linformer", "performer", "linear"}),
          trained("tagging", "steps=2500"),
          trained("graph[edges=[given,hidden]]", "steps=600,positions=none"),
          trained("reverse[preset=standard]",
                  "steps=2000,batch=64,heads=4,warmup=200,eval_every=250,target=0.998"),
          trained("sort[preset=standard]",
                  "steps=2000,batch=64,heads=4,warmup=200,eval_every=250,target=0.998"),
          trained("translate",
                  "steps=2400,batch=64,heads=4,feed_forward=256,learning_rate=3e-3,"
                  "eval_every=400,target=0.998"),
      }};
}

namespace {

// Everything in the catalog, with windows, blocks and ranks for sequences of 64 to 256 positions:
// at their defaults most patterns see all of those, and are exact attention.
std::vector<std::string> short_reaching_variants() {
  static const std::map<std::string, std::string> short_reach = {
      {"truncated", "truncated[window=16]"},  {"local", "local[block=16]"},
      {"longformer", "longformer[window=8]"}, {"bigbird", "bigbird[block=8,random_blocks=1]"},
      {"linformer", "linformer[rank=16]"},    {"sinkhorn", "sinkhorn[block=16]"},
      {"reformer", "reformer[chunk=16]"}};
  std::vector<std::string> all;
  for (const VariantInfo& info : all_variants()) {
    const auto found = short_reach.find(info.name);
    all.push_back(found == short_reach.end() ? info.name : found->second);
  }
  return all;
}

}  // namespace

// A row for everything in the catalog: growth of time and memory, recall, and frames.
Profile baselines_profile() {
  const std::map<std::string, std::string> lengths = {{"length", "2048:16384:*2"}, {"heads", "1"}};
  std::map<std::string, std::string> timed = lengths;
  timed["repetitions"] = "9";
  return {{.name = "baselines",
           .summary = "every variant: time and memory from 2048 to 16384 positions, recall, and "
                      "frames, with short windows; ten minutes on 2 cores",
           .version = 2},
          {{Measure::speed, {}, {}, timed, ""},
           {Measure::memory, {}, {}, lengths, ""},
           {Measure::accuracy,
            short_reaching_variants(),
            {"mqar[preset=small]"},
            {},
            "steps=600,learning_rate=3e-3,heads=1,target=0.995"},
           {Measure::accuracy,
            short_reaching_variants(),
            {"frames[length=256]"},
            {},
            "steps=600,batch=8,heads=4,positions=sinusoidal,learning_rate=4e-3,"
            "validation_examples=64,test_examples=128"}}};
}

}  // namespace attn
