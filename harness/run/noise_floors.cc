// Floors by machine, mode, threads and length; see noise_floors.h.
#include "harness/run/noise_floors.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/base/check.h"
#include "harness/cell/codec.h"
#include "harness/plan/machine_and_build.h"
#include "harness/store/user_cache.h"

namespace attn {
namespace {

constexpr const char* kMachineHash = "machine";

std::string hash_of_this_machine() { return hash_of({machine_and_build()}); }

}  // namespace

NoiseFloor kept_floors(const std::string& file) {
  const std::string machine = hash_of_this_machine();
  const UserCache cache(file);
  NoiseFloor floors;
  for (const auto& [hash, value] : cache.all()) try {
      if (!value.is_object() || value.value(kMachineHash, "") != machine) continue;
      const FloorAt floor = floor_at_of(value);
      if (floor.share >= 0 && floor.length > 0) floors.push_back(floor);
    } catch (const std::exception&) {  // damaged: measured anew
      continue;
    }
  std::sort(floors.begin(), floors.end(), [](const FloorAt& a, const FloorAt& b) {
    return std::tie(a.mode, a.threads, a.length) < std::tie(b.mode, b.threads, b.length);
  });
  return floors;
}

void keep_floors(const std::string& file, const NoiseFloor& floors) {
  const std::string machine = hash_of_this_machine();
  std::map<std::string, Json> values;
  for (const FloorAt& floor : floors) {
    Json value = {{kMachineHash, machine}};
    value.update(to_json(floor));
    values[hash_of({machine, name_of(floor.mode), floor.threads, floor.length})] = value;
  }
  UserCache(file).keep(values);
}

}  // namespace attn
