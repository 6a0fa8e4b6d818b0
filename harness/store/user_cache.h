// What sweeps of one user keep for later sweeps, in a file of their own: JSON values by a hash of
// everything that they depend on.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "harness/store/rows.h"

namespace attn {

class UserCache {
 public:
  // A file that is missing, damaged or of another form holds nothing and is replaced by keep().
  explicit UserCache(std::string file);
  const Json* find(const std::string& hash) const;
  const std::map<std::string, Json>& all() const { return all_; }
  // Why the file holds nothing although it is there; "" where it was read.
  const std::string& fault() const { return fault_; }
  // Writes the file at once. If it cannot be written, the next sweep finds the value out again.
  void keep(const std::string& hash, Json value) { keep({{hash, std::move(value)}}); }
  void keep(const std::map<std::string, Json>& values);  // several at once

  // attnbench/NAME in $XDG_CACHE_HOME or ~/.cache; "" where there is neither.
  static std::string default_file(const std::string& name);

 private:
  void read();
  void write() const;

  std::string file_, fault_;
  std::map<std::string, Json> all_;
};

}  // namespace attn
