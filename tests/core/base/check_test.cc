// An Error is one line, whatever the input that it quotes.
#include "core/base/check.h"

#include <gtest/gtest.h>

#include "core/base/io_error.h"

namespace attn::check_test {
namespace {

TEST(Check, AMessageIsOneLine) {
  const std::string quoted = "Gr\u00fc\u00dfe\n\tb\x1b[31m\x7f";
  const std::string line = "'Gr\u00fc\u00dfe\\n\\tb\\x1b[31m\\x7f'";
  try {
    ATTN_CHECK(false, "'{}'", quoted);
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), line);
  }
  try {
    ATTN_IO_CHECK(false, "'{}'", quoted);
  } catch (const IoError& error) {
    EXPECT_EQ(error.what(), line);
  }
}

}  // namespace
}  // namespace attn::check_test
