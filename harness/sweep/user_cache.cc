// A JSON object in a file, replaced as a whole; see user_cache.h.
#include "harness/sweep/user_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "core/base/parallel.h"
#include "core/simd/isa.h"
#include "harness/measure/environment.h"
#include "harness/store/parse.h"

namespace attn {

UserCache::UserCache(std::string file) : file_(std::move(file)) { read(); }

void UserCache::read() {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file_, ignored)) return;
  std::ifstream in(file_);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const Parsed read = parse_json(text);
  if (!read.fault.empty() || !read.value.is_object()) return;
  for (const auto& [hash, value] : read.value.items()) all_[hash] = value;
}

const Json* UserCache::find(const std::string& hash) const {
  const auto it = all_.find(hash);
  return it == all_.end() ? nullptr : &it->second;
}

// Another program may have kept values since this one read the file, so the file is read again
// while its folder is locked. What it holds under `hash` is older than `value`.
void UserCache::keep(const std::string& hash, Json value) {
  if (file_.empty()) {
    all_[hash] = std::move(value);
    return;
  }
  std::error_code fault;
  const std::string folder = std::filesystem::absolute(file_, fault).parent_path();
  std::filesystem::create_directories(folder, fault);
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) flock(descriptor, LOCK_EX);
  read();
  all_[hash] = std::move(value);
  Json all = Json::object();
  for (const auto& [name, kept] : all_) all[name] = kept;
  const std::string draft = file_ + ".draft";
  const bool written =
      descriptor >= 0 && static_cast<bool>(std::ofstream(draft) << all.dump(1) << std::endl);
  if (written) std::filesystem::rename(draft, file_, fault);
  if (descriptor < 0) return;
  if (!written || fault) std::filesystem::remove(draft, fault);
  close(descriptor);  // and with it the lock
}

std::string UserCache::default_file(const std::string& name) {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (cache && *cache == '/') return std::string(cache) + "/attnbench/" + name;
  if (home && *home == '/') return std::string(home) + "/.cache/attnbench/" + name;
  return {};
}

const std::string& UserCache::machine() {
  static const std::string found = [] {
    std::string all = fmt::format("{} threads, {}", hardware_threads(), isa());
    for (const EnvironmentField& field : environment())
      if (field.name == "cpu_model" || field.name == "compiler" || field.name == "flags")
        all += ", " + field.value;
    return all;
  }();
  return found;
}

}  // namespace attn
