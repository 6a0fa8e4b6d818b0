// libFuzzer's way into one target; CMake says which.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  attn::fuzz::ATTN_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
