// The profiles: data only. Raise a profile's version when its cells change.
#include "harness/sweep/profiles.h"

#include "core/check.h"
#include "core/params.h"

namespace attn {
namespace {

// Every measure once, as small as it gets: shows within 20 s that the whole path works, not who
// wins.
Profile smoke() {
  const std::string training =
      "steps=20,width=32,heads=2,layers=1,feed_forward=32,batch=8,warmup=5,eval_every=10,"
      "validation_examples=64,test_examples=64";
  return {{"smoke", "every measure once, tiny, in under 20 seconds", 1},
          {{"speed",
            {},
            {},
            {{"length", "64,128"}, {"heads", "2"}, {"head_dim", "16"}, {"repetitions", "3"}},
            ""},
           {"memory", {}, {}, {{"length", "64,128"}, {"heads", "2"}, {"head_dim", "16"}}, ""},
           {"fidelity",
            {},
            {},
            {{"length", "64"}, {"heads", "2"}, {"head_dim", "16"}, {"input", "random,needle"}},
            ""},
           {"accuracy",
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
                                           "performer[features=[32,128,512]]", "linear"};
  const std::vector<std::string> trained = {"full", "truncated", "linformer",
                                            "performer[features=64]", "linear"};
  return {
      {"quick", "all five variants by every measure, in at most 8 minutes on 2 cores", 2},
      {{"speed",
        both_full,
        {},
        {{"length", "64:4096:*2"}, {"heads", "2"}, {"mode", "forward,train"}, {"repetitions", "9"}},
        ""},
       {"speed",
        both_full,
        {},
        {{"length", "128:2048:*2"}, {"heads", "2"}, {"causal", "true"}, {"repetitions", "9"}},
        ""},
       {"speed",  // the cost behind the errors of the fidelity cells below
        ladder,
        {},
        {{"length", "512"}, {"heads", "2"}, {"repetitions", "9"}},
        ""},
       {"speed",
        both_full,
        {},
        {{"length", "512,2048"}, {"heads", "2"}, {"scope", "layer,model"}, {"repetitions", "6"}},
        ""},
       {"memory", both_full, {}, {{"length", "1024:16384:*2"}, {"heads", "1"}}, ""},
       {"memory", both_full, {}, {{"length", "1024,4096"}, {"heads", "1"}, {"mode", "train"}}, ""},
       {"fidelity",
        ladder,
        {},
        {{"length", "512"},
         {"heads", "2"},
         {"input", "random,needle"},
         {"input_scale", "0.5:4:*2"}},
        ""},
       {"accuracy",
        {"full", "truncated[window=8]", "linformer", "performer[features=64]", "linear"},
        {"mqar[vocab=64,pairs=4,length=64,power=1]"},
        {},
        "steps=1200,learning_rate=3e-3,target=0.995"},
       {"accuracy",
        trained,
        {"image[side=16,train_examples=8000]"},
        {},
        "steps=900,validation_examples=256,eval_every=100"},
       {"accuracy",
        trained,
        {"listops[preset=small,train_examples=8000]"},
        {},
        "steps=1000,learning_rate=2e-3"},
       {"accuracy",
        trained,
        {"retrieval[preset=small]"},
        {},
        "positions=sinusoidal,steps=700,warmup=100,validation_examples=256,test_examples=512,"
        "target=0.99"}}};
}

const std::vector<Profile>& profiles() {
  static const std::vector<Profile> list = {
      smoke(), quick(), probes_profile(), baselines_profile(), standard_profile(), lra_profile()};
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
