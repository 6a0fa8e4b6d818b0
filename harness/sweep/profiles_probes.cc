// The profile of small probes: what each kind of attention can and cannot recall, copy, count and
// transform, data only. Raise its version when its cells change.
#include "harness/sweep/profiles.h"

namespace attn {

// One seed, two layers, a recipe a task with which `full` reaches its known score within ten
// minutes of a core; the other variants get the same steps. Lengths beyond that of training are
// scored where a model is defined there (`stretch`).
Profile probes_profile() {
  const auto trained = [](std::string task, std::string training,
                          std::vector<std::string> variants = {}) {
    return SubSweep{"accuracy", std::move(variants), {std::move(task)}, {}, std::move(training)};
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
          trained("copy", "steps=1000,batch=16,learning_rate=3e-3,warmup=50"),
          trained("selective_copy",
                  "steps=6000,heads=4,feed_forward=256,learning_rate=3e-3,target=0.99"),
          trained("needle[vocab=64]", "steps=6000,batch=128,eval_every=250,target=0.995",
                  {"full", "truncated[window=16]", "linformer", "performer", "linear"}),
          trained("majority", "steps=1500,target=0.999"),
          trained("parity", "steps=1500"),
          trained("adding", "steps=1200"),
          trained("fuzzy_recall", "steps=2200,heads=4"),
          trained("noisy_recall", "steps=1200"),
          trained("compression", "steps=2500,width=128,feed_forward=256"),
          trained("memorization", "steps=1500,target=0.999"),
          trained("frames", "steps=1500,heads=4,batch=16,positions=sinusoidal",
                  {"full", "truncated[window=16]", "linformer", "performer", "linear"}),
          trained("tagging", "steps=2500"),
          trained("graph[edges=[given,hidden]]", "steps=1000,positions=none"),
          trained("reverse[min_length=16]", "steps=2000,batch=64,heads=4,target=0.998"),
          trained("sort[min_length=16]", "steps=2000,batch=64,heads=4,target=0.998"),
          trained("translate", "steps=2000,batch=64,heads=4,target=0.998"),
      }};
}

}  // namespace attn
