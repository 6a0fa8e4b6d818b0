// The profiles that take hours: data only. Raise a profile's version when its cells change.
#include "harness/sweep/profiles.h"

namespace attn {

const std::vector<std::string>& first_variants() {
  static const std::vector<std::string> names = {"full", "truncated", "linformer", "performer",
                                                 "linear"};
  return names;
}

// Every task of the first kind by the first five variants, three seeds, each variant with the same
// learning rates to choose from on validation; lengths and steps are what 2 cores train in a day.
// The other measures are those behind its pictures.
Profile standard_profile() {
  const std::map<std::string, std::string> seeds = {{"seed", "0,1,2"}};
  const std::string grid = "learning_rate=[1e-3,3e-3]";
  const std::vector<std::string> both_full = {"full[kernel=[tiled,materialized]]", "truncated",
                                              "linformer", "performer", "linear"};
  const auto trained = [&](std::string task, std::string training) {
    return SubSweep{
        Measure::accuracy, first_variants(), {std::move(task)}, seeds, std::move(training), grid};
  };
  return {
      {.name = "standard",
       .summary = "Long Range Arena's tasks and mqar, the first five variants (others with -v), 3 "
                  "seeds, tuned alike; 17 hours on 2 cores by forecast",
       .version = 1,
       .timeout_s = 3600},
      {{Measure::speed,
        both_full,
        {},
        {{"length", "64:16384:*2"},
         {"heads", "4"},
         {"mode", "forward,train"},
         {"causal", "false,true"},
         {"repetitions", "15"}},
        ""},
       {Measure::memory,
        both_full,
        {},
        {{"length", "1024:16384:*2"}, {"heads", "1"}, {"mode", "forward,train"}},
        ""},
       {Measure::fidelity,
        {"full", "truncated[window=[16,64,256]]", "linformer[rank=[16,64,256]]",
         "performer[features=[32,128,512]]", "linear"},
        {},
        {{"length", "512,2048"},
         {"heads", "2"},
         {"input", "random,needle"},
         {"input_scale", "0.5:4:*2"},
         {"seed", "0,1,2"}},
        ""},
       trained("mqar[preset=standard]", "steps=3000,batch=32,validation_examples=256"),
       trained("listops[preset=standard]", "steps=3000,batch=32"),
       trained("image[preset=standard]", "steps=1500,batch=32"),
       trained("text[preset=standard]", "steps=1500,batch=16,validation_examples=256"),
       trained("retrieval[preset=standard]", "steps=1500,batch=16,validation_examples=256"),
       trained("pathfinder[preset=standard]", "steps=3000,batch=32"),
       trained("pathx[preset=standard]",
               "steps=300,batch=8,eval_every=50,"
               "validation_examples=128,test_examples=512")}};
}

// Which of the five at 4k to 16k, and at what loss: recall trained at 256 tokens and scored up to
// 4096, and time, memory and decoding up to 16384 with the same parameters. Steps after which the
// validation curves of all variants are flat or reach their target; the learning rate is the best
// of 2e-3, 3e-3 and 4e-3 for `full`, and no other variant gained by another. Short sequences in
// training teach `full` to compare keys at any distance; rotary positions let it be scored there.
Profile long_profile() {
  const std::vector<std::string> variants = {"full", "truncated[window=64]", "linformer[rank=64]",
                                             "performer[features=64]", "linear"};
  const auto trained = [&](std::string task, std::string training) {
    training += ",batch=16,positions=rotary,stretch=16,validation_examples=256,test_examples=256";
    return SubSweep{
        Measure::accuracy, variants, {std::move(task)}, {{"seed", "0,1,2"}}, std::move(training)};
  };
  const std::map<std::string, std::string> lengths = {{"length", "1024:16384:*2"}, {"heads", "2"}};
  std::map<std::string, std::string> timed = lengths, decoded = lengths;
  timed["repetitions"] = decoded["repetitions"] = "6";
  decoded["mode"] = "decode";
  return {{.name = "long",
           .summary = "the first five at 4k to 16k: recall up to 4096 tokens, time, memory and "
                      "decoding up to 16384; within an hour on 2 cores",
           .version = 1,
           .timeout_s = 1800},
          {{Measure::speed, variants, {}, timed, ""},
           {Measure::speed, variants, {}, decoded, ""},
           {Measure::memory, variants, {}, lengths, ""},
           trained("needle[length=256,min_length=16,vocab=64,distractors=3]",
                   "steps=4000,learning_rate=2e-3,target=0.998"),
           trained("induction[length=256,min_length=16,symbols=15]",
                   "steps=4000,learning_rate=2e-3,target=0.998"),
           trained("mqar[length=256,pairs=8,vocab=64]", "steps=1500,learning_rate=3e-3")}};
}

// Long Range Arena's lengths, model sizes and budgets (its published configurations; the width of
// queries and keys is the model's here, theirs is half of it in the picture tasks), three seeds.
Profile lra_profile() {
  const std::map<std::string, std::string> seeds = {{"seed", "0,1,2"}};
  const auto trained = [&](std::string task, std::string training) {
    return SubSweep{
        Measure::accuracy, first_variants(), {std::move(task)}, seeds, std::move(training)};
  };
  const std::string evaluated = "eval_every=500,validation_examples=2000,test_examples=2000,";
  return {
      {.name = "lra",
       .summary = "Long Range Arena's lengths, model sizes and steps: years of a core, for a "
                  "cluster (--shard)",
       .version = 1,
       .timeout_s = 60.0 * 24 * 3600},
      {{Measure::speed,
        first_variants(),
        {},
        {{"length", "1000:4000:+1000"},
         {"batch", "32"},
         {"heads", "4"},
         {"mode", "forward,train"},
         {"repetitions", "9"}},
        ""},
       {Measure::memory,
        first_variants(),
        {},
        {{"length", "1000:4000:+1000"}, {"heads", "4"}, {"mode", "forward,train"}},
        ""},
       {Measure::fidelity,
        first_variants(),
        {},
        {{"length", "1000:4000:+1000"}, {"input", "random,needle"}},
        ""},
       trained("listops[preset=lra]",
               evaluated +
                   "positions=sinusoidal,clip=0,layers=4,heads=8,width=512,feed_forward=1024,"
                   "batch=32,steps=5000,"
                   "warmup=1000,learning_rate=1.6e-3,weight_decay=0.1,dropout=0.1,"
                   "pooling=cls"),
       trained("text[preset=lra]",
               evaluated +
                   "positions=sinusoidal,clip=0,layers=4,heads=4,width=256,feed_forward=1024,"
                   "batch=32,steps=20000,"
                   "warmup=8000,learning_rate=5.6e-4,weight_decay=0.1,dropout=0.1,"
                   "pooling=cls"),
       trained("retrieval[preset=lra]",
               evaluated +
                   "positions=sinusoidal,clip=0,layers=4,heads=4,width=128,feed_forward=512,"
                   "batch=32,steps=5000,"
                   "warmup=5000,learning_rate=3.5e-4,weight_decay=0.1,dropout=0.1,"
                   "pooling=cls"),
       trained("image[preset=lra]",
               evaluated + "positions=learned,clip=0,layers=1,heads=8,width=128,feed_forward=128,"
                           "batch=256,steps=35000,warmup=175,learning_rate=5e-4,"
                           "weight_decay=0,dropout=0.1,pooling=cls"),
       trained("pathfinder[preset=lra]",
               evaluated + "positions=sinusoidal,clip=0,layers=4,heads=4,width=32,feed_forward=32,"
                           "batch=512,steps=62400,"
                           "warmup=312,learning_rate=1e-3,weight_decay=0,dropout=0.2,"
                           "pooling=mean"),
       trained("pathx[preset=lra]",
               evaluated + "positions=learned,layers=1,heads=2,width=32,feed_forward=32,"
                           "batch=64,steps=500000,warmup=2500,learning_rate=1e-3,clip=1,"
                           "weight_decay=0,dropout=0.1,pooling=mean")}};
}

}  // namespace attn
