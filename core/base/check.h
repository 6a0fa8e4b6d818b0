// Errors. ATTN_CHECK checks arguments of public functions in every build. ATTN_DCHECK checks
// internal invariants in debug and sanitizer builds. Both throw attn::Error. The message of
// ATTN_CHECK is the formatted text alone and is written for the user.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>

namespace attn {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] void throw_error(const std::string& message);

}  // namespace attn

#define ATTN_CHECK(condition, ...)                                     \
  do {                                                                 \
    if (!(condition)) ::attn::throw_error(::fmt::format(__VA_ARGS__)); \
  } while (false)

#ifdef ATTN_DEBUG
#define ATTN_DCHECK(condition)                                                           \
  do {                                                                                   \
    if (!(condition))                                                                    \
      ::attn::throw_error(                                                               \
          ::fmt::format("{}:{}: invariant broken: {}", __FILE__, __LINE__, #condition)); \
  } while (false)
#else
#define ATTN_DCHECK(condition) static_cast<void>(0)
#endif
