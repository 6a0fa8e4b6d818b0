// Input and output that the system refuses: a full disk, no permission, a file that cannot be
// opened or read. The command line gives them an exit code of their own; what a file says wrongly
// is an Error as any other.
#pragma once

#include <utility>

#include "core/base/check.h"

namespace attn {

class IoError : public Error {
 public:
  using Error::Error;
};

[[noreturn]] inline void throw_io_error(std::string message) { throw IoError(std::move(message)); }

}  // namespace attn

#define ATTN_IO_CHECK(condition, ...)                                     \
  do {                                                                    \
    if (!(condition)) ::attn::throw_io_error(::fmt::format(__VA_ARGS__)); \
  } while (false)
