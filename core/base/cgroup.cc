// Reads /proc/self/cgroup and the files of each group from there up to the root: the tightest limit
// holds. In a container the path may name a folder of the host; then the root is the container's.
#include "core/base/cgroup.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace attn {
namespace {

// Folders of this process's group for one controller, from the inside out. `version_two` says how
// their files are named.
struct Groups {
  std::vector<std::string> folders;
  bool version_two = false;
};

// A path begins with "/": any other counts as the root.
std::vector<std::string> with_parents(const std::string& root, std::string path) {
  std::vector<std::string> folders;
  for (; path.size() > 1 && path[0] == '/'; path.erase(path.find_last_of('/')))
    folders.push_back(root + path);
  folders.push_back(root);
  return folders;
}

bool names(const std::string& list, const std::string& word) {
  std::istringstream words(list);
  for (std::string one; std::getline(words, one, ',');)
    if (one == word) return true;
  return false;
}

// A line is "id:controllers:path"; that of version 2 has no controllers.
Groups groups_of(const std::string& controller, const CgroupPlace& place) {
  const std::string& root = place.root;
  Groups found{{root}, true};
  std::istringstream file(place.membership);
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string list = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (names(list, controller)) return {with_parents(root + "/" + list, path), false};
    if (list.empty()) found.folders = with_parents(root, path);
  }
  return found;
}

// The numbers at the start of a file; empty for "max".
std::vector<double> numbers(const std::string& path) {
  std::vector<double> list;
  std::ifstream file(path);
  for (double number = 0; file >> number;) list.push_back(number);
  return list;
}

std::optional<double> quota_of(const std::string& folder, bool version_two) {
  std::vector<double> both;  // microseconds, in each period of so many
  if (version_two) {
    both = numbers(folder + "/cpu.max");
  } else {
    both = numbers(folder + "/cpu.cfs_quota_us");
    const std::vector<double> period = numbers(folder + "/cpu.cfs_period_us");
    both.insert(both.end(), period.begin(), period.end());
  }
  if (both.size() != 2 || !(both[0] > 0) || !(both[1] > 0)) return std::nullopt;
  return both[0] / both[1];
}

// A line of memory.stat is "name bytes"; 0 where none has that name.
double stat_of(const std::string& folder, const std::string& name) {
  std::ifstream file(folder + "/memory.stat");
  std::string one;
  for (double bytes = 0; file >> one >> bytes;)
    if (one == name) return bytes;
  return 0;
}

CgroupPlace place_of_this_process() {
  std::ostringstream membership;
  membership << std::ifstream("/proc/self/cgroup").rdbuf();
  return {"/sys/fs/cgroup", membership.str()};
}

}  // namespace

std::optional<double> cpu_quota() { return cpu_quota(place_of_this_process()); }

std::optional<double> cpu_quota(const CgroupPlace& place) {
  std::optional<double> least;
  const Groups groups = groups_of("cpu", place);
  for (const std::string& folder : groups.folders)
    if (const auto quota = quota_of(folder, groups.version_two))
      least = std::min(least.value_or(*quota), *quota);
  return least;
}

std::optional<int64_t> cgroup_memory_left() { return cgroup_memory_left(place_of_this_process()); }

std::optional<int64_t> cgroup_memory_left(const CgroupPlace& place) {
  constexpr double kNoLimit = 1e18;  // version 1 writes the largest number of pages for none
  std::optional<int64_t> least;
  const Groups groups = groups_of("memory", place);
  for (const std::string& folder : groups.folders) {
    const bool two = groups.version_two;
    const auto limit = numbers(folder + (two ? "/memory.max" : "/memory.limit_in_bytes"));
    const auto used = numbers(folder + (two ? "/memory.current" : "/memory.usage_in_bytes"));
    if (limit.empty() || used.empty() || limit[0] > kNoLimit) continue;
    const double cached = stat_of(folder, two ? "inactive_file" : "total_inactive_file");
    const auto left = static_cast<int64_t>(std::clamp(limit[0] - used[0] + cached, 0.0, limit[0]));
    least = std::min(least.value_or(left), left);
  }
  return least;
}

}  // namespace attn
