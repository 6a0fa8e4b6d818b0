// The instruction set of the kernels: names for the run-time targets of Highway; see isa.h.
#include "core/simd/isa.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "core/base/check.h"
#include "core/simd/targets.h"

#include <hwy/highway.h>

namespace attn {
namespace {

std::string name_of(int64_t target) {
  switch (target) {
    case HWY_AVX3:
      return "avx512";
    case HWY_AVX2:
      return "avx2";
    case HWY_EMU128:
    case HWY_SCALAR:
      return "scalar";
  }
  std::string name = hwy::TargetName(target);  // of another architecture
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

int64_t runnable() { return hwy::SupportedTargets() & HWY_TARGETS; }

void run_on(int64_t targets) {  // 0: whatever the machine can
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(runnable());
}

int64_t everything() {  // and what was held is held again
  const int64_t held = runnable();
  run_on(0);
  const int64_t all = runnable();
  if (held != all) run_on(held);
  return all;
}

}  // namespace

std::string isa() {
  const int64_t targets = runnable();
  return name_of(targets & -targets);  // the lowest bit is the best
}

std::string compiled_isa() {
#if defined(__AVX512F__)
  return "avx512";
#elif defined(__AVX2__) && defined(__FMA__)
  return "avx2";
#elif defined(__AVX__)
  return "avx";
#elif defined(__SSE4_2__)
  return "sse4.2";
#elif defined(__SSE2__)
  return "sse2";
#elif defined(__ARM_NEON)
  return "neon";
#else
  return "scalar";
#endif
}

std::vector<std::string> isas() {
  std::vector<std::string> names;
  for (int64_t rest = everything(); rest; rest &= rest - 1) names.push_back(name_of(rest & -rest));
  return names;
}

void hold_isa(const std::string& name) {
  std::vector<std::string> known = {"best"};
  int64_t chosen = 0;
  for (int64_t rest = everything(); rest; rest &= rest - 1) {
    known.push_back(name_of(rest & -rest));
    if (known.back() == name) chosen = rest & -rest;
  }
  ATTN_CHECK(chosen || name == "best", "no instruction set \"{}\" here; there is {}", name,
             fmt::join(known, ", "));
  run_on(chosen);
}

}  // namespace attn
