// Memory that a variant takes beside the counted pool, by the operating system's figures.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace attn {

// How far the resident memory of this process rises above its present size while `run` runs, in
// bytes. Free blocks of the C library are returned first. nullopt: the system does not tell, or a
// sanitizer's own memory hides it.
std::optional<int64_t> resident_growth(const std::function<void()>& run);

}  // namespace attn
