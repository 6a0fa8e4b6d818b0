// The built-in profiles, read from the sweep files that CMake embeds; see profiles.h.
#include "harness/plan/profiles.h"

#include <utility>

#include "core/base/check.h"
#include "core/base/nearest.h"
#include "core/base/params.h"
#include "harness/plan/resolve.h"
#include "harness/plan/sweep_file.h"

namespace attn {

extern const std::vector<std::pair<const char*, const char*>> kProfileTexts;  // by name

namespace {

const Profile& find_among(const std::vector<Profile>& profiles, std::string_view name) {
  std::vector<std::string> names;
  for (const Profile& profile : profiles) {
    if (profile.info.name == name) return profile;
    names.push_back(profile.info.name);
  }
  throw_error(fmt::format("unknown profile '{}'{}; there are {}", name, nearest_note(name, names),
                          join(names, ", ")));
}

// A file may extend one of `known`.
Profile read_with(const std::vector<Profile>& known, const std::string& file,
                  std::string_view text) {
  SweepNames names = catalogued_names();
  names.profile = [&](const std::string& name) -> const Profile& {
    return find_among(known, name);
  };
  return parse_sweep_file(file, text, names);
}

}  // namespace

const std::vector<Profile>& all_built_in() {
  static const std::vector<Profile> list = [] {
    std::vector<Profile> profiles;
    for (const auto& [name, text] : kProfileTexts)
      profiles.push_back(read_with(profiles, fmt::format("profiles/{}.toml", name), text));
    return profiles;
  }();
  return list;
}

const Profile& find_profile(std::string_view name) { return find_among(all_built_in(), name); }

Profile read_profile(const std::string& file, std::string_view text) {
  return read_with(all_built_in(), file, text);
}

const Profile* asked_profile(const SweepRequest& request) {
  if (request.sweep_file) return request.sweep_file.get();
  return request.profile.empty() ? nullptr : &find_profile(request.profile);
}

double timeout_of(const SweepRequest& request) {
  if (request.timeout_s > 0) return request.timeout_s;
  const Profile* const profile = asked_profile(request);
  return profile ? profile->info.timeout_s : ProfileInfo().timeout_s;
}

const std::vector<ProfileInfo>& all_profiles() {
  static const std::vector<ProfileInfo> infos = [] {
    std::vector<ProfileInfo> list;
    for (const Profile& profile : all_built_in()) list.push_back(profile.info);
    return list;
  }();
  return infos;
}

}  // namespace attn
