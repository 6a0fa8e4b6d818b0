// The profiles: data only. Raise a profile's version when its cells change.
#include "harness/sweep/profiles.h"

#include "core/base/check.h"
#include "core/base/params.h"

namespace attn {
namespace {

// Every measure once, as small as it gets: shows within 20 s that the whole path works, not who
// wins.
Profile smoke() {
  const std::string training =
      "steps=20,width=32,heads=2,layers=1,feed_forward=32,batch=8,warmup=5,eval_every=10,"
      "validation_examples=64,test_examples=64";
  return {
      {"smoke", "every measure once, tiny, in under 20 seconds", 1},
      {{Measure::speed,
        {},
        {},
        {{"length", "64,128"}, {"heads", "2"}, {"head_dim", "16"}, {"repetitions", "3"}},
        ""},
       {Measure::memory, {}, {}, {{"length", "64,128"}, {"heads", "2"}, {"head_dim", "16"}}, ""},
       {Measure::fidelity,
        {},
        {},
        {{"length", "64"}, {"heads", "2"}, {"head_dim", "16"}, {"input", "random,needle"}},
        ""},
       {Measure::accuracy,
        {"full", "linear"},
        {"mqar[vocab=32,pairs=2,length=16,train_examples=256]"},
        {},
        training}}};
}

// One machine's answer in at most 8 minutes on 2 cores: every measure and every plot. One thread,
// so that the figures do not depend on how many cores there are.
Profile quick() {
  const std::vector<std::string> both_full = {"full[kernel=[tiled,materialized]]", "truncated",
                                              "linformer", "performer", "linear"};
  const std::vector<std::string> ladder = {"full", "truncated[window=[16,64,256]]",
                                           "linformer[rank=[16,64,256]]",
                                           "performer[features=[32,64,256]]", "linear"};
  // Their times and errors are those of the ladder's cells of the same parameters.
  const std::vector<std::string> trained = {"full", "truncated[window=16]", "linformer[rank=16]",
                                            "performer[features=64]", "linear"};
  const std::string recipe = "learning_rate=6e-3,positions=rotary,";
  return {
      {"quick", "all five variants by every measure, in at most 8 minutes on 2 cores", 3},
      {{Measure::speed,
        both_full,
        {},
        {{"length", "64:4096:*2"}, {"heads", "2"}, {"mode", "forward,train"}, {"repetitions", "9"}},
        ""},
       {Measure::speed,
        both_full,
        {},
        {{"length", "128:2048:*2"}, {"heads", "2"}, {"causal", "true"}, {"repetitions", "9"}},
        ""},
       {Measure::speed,  // the cost behind the errors of the fidelity cells below
        ladder,
        {},
        {{"length", "512"}, {"heads", "2"}, {"repetitions", "9"}},
        ""},
       {Measure::speed,
        both_full,
        {},
        {{"length", "512,2048"}, {"heads", "2"}, {"scope", "layer,model"}, {"repetitions", "6"}},
        ""},
       {Measure::memory, both_full, {}, {{"length", "1024:16384:*2"}, {"heads", "1"}}, ""},
       {Measure::memory,
        both_full,
        {},
        {{"length", "1024,4096"}, {"heads", "1"}, {"mode", "train"}},
        ""},
       {Measure::fidelity,
        ladder,
        {},
        {{"length", "512"},
         {"heads", "2"},
         {"input", "random,needle"},
         {"input_scale", "0.5:4:*2"}},
        ""},
       // Tasks that 2 cores learn in minutes, with the learning rate that validation chose
       // of 1.5e-3, 3e-3 and 6e-3 for most of the five; with steps after which the curves of all
       // are flat.
       {Measure::accuracy,
        trained,
        {"mqar[preset=small]"},
        {{"seed", "0,1,2"}},
        recipe + "steps=700"},
       {Measure::accuracy,
        trained,
        {"copy[length=64]"},
        {{"seed", "0,1,2"}},
        recipe + "steps=1200,batch=16,warmup=50"},
       {Measure::accuracy,
        trained,
        {"frames[length=128,closure=48]"},
        {},
        recipe + "steps=1200,batch=16,heads=4,validation_examples=128,test_examples=256"}}};
}

const std::vector<Profile>& profiles() {
  static const std::vector<Profile> list = {smoke(),
                                            quick(),
                                            long_profile(),
                                            probes_profile(),
                                            baselines_profile(),
                                            standard_profile(),
                                            lra_profile()};
  return list;
}

}  // namespace

double timeout_of(const SweepRequest& request) {
  if (request.timeout_s > 0) return request.timeout_s;
  for (const ProfileInfo& info : all_profiles())
    if (info.name == request.profile) return info.timeout_s;
  return ProfileInfo().timeout_s;
}

const std::vector<ProfileInfo>& all_profiles() {
  static const std::vector<ProfileInfo> infos = [] {
    std::vector<ProfileInfo> list;
    for (const Profile& profile : profiles()) list.push_back(profile.info);
    return list;
  }();
  return infos;
}

const std::vector<SubSweep>& sub_sweeps(std::string_view name) {
  std::vector<std::string> names;
  for (const Profile& profile : profiles()) {
    if (profile.info.name == name) return profile.sweeps;
    names.push_back(profile.info.name);
  }
  throw_error(fmt::format("unknown profile '{}'; nearest is '{}'", name, nearest(name, names)));
}

}  // namespace attn
