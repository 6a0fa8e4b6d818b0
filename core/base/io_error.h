// Errors of the operating system during input and output: a full disk, a missing permission, a file
// that cannot be opened or read. The command line exits with a separate code for them. Invalid
// contents of a file are a plain Error.
#pragma once

#include "core/base/check.h"
#include "core/base/one_line.h"

namespace attn {

class IoError : public Error {
 public:
  using Error::Error;
};

[[noreturn]] inline void throw_io_error(const std::string& message) {
  throw IoError(in_one_line(message));
}

}  // namespace attn

#define ATTN_IO_CHECK(condition, ...)                                     \
  do {                                                                    \
    if (!(condition)) ::attn::throw_io_error(::fmt::format(__VA_ARGS__)); \
  } while (false)
