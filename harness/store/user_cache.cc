// A JSON object in a file, replaced as a whole; see user_cache.h.
#include "harness/store/user_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "harness/store/parse.h"

namespace attn {

UserCache::UserCache(std::string file) : file_(std::move(file)) { read(); }

void UserCache::read() {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file_, ignored)) return;
  std::ifstream in(file_);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const Parsed read = parse_json(text);
  fault_ = read.fault.empty() && !read.value.is_object() ? "it holds no JSON object" : read.fault;
  if (!fault_.empty()) return;
  for (const auto& [hash, value] : read.value.items()) all_[hash] = value;
}

const Json* UserCache::find(const std::string& hash) const {
  const auto it = all_.find(hash);
  return it == all_.end() ? nullptr : &it->second;
}

// Another program may have kept values since this one read the file, so the file is read again
// while its folder is locked. What it holds under the same hashes is older than `values`.
void UserCache::keep(const std::map<std::string, Json>& values) {
  int folder = -1;
  if (!file_.empty()) {
    std::error_code fault;
    const auto path = std::filesystem::absolute(file_, fault).parent_path();
    std::filesystem::create_directories(path, fault);
    folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  if (folder >= 0) flock(folder, LOCK_EX), read();
  for (const auto& [hash, value] : values) all_[hash] = value;
  if (folder < 0) return;
  write();
  close(folder);  // and with it the lock
}

void UserCache::write() const {
  Json all = Json::object();
  for (const auto& [hash, value] : all_) all[hash] = value;
  const std::string draft = file_ + ".draft";
  std::error_code fault;
  const bool written = static_cast<bool>(std::ofstream(draft) << all.dump(1) << std::endl);
  if (written) std::filesystem::rename(draft, file_, fault);
  if (!written || fault) std::filesystem::remove(draft, fault);
}

std::string UserCache::default_file(const std::string& name) {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (cache && *cache == '/') return std::string(cache) + "/attnbench/" + name;
  if (home && *home == '/') return std::string(home) + "/.cache/attnbench/" + name;
  return {};
}

}  // namespace attn
