// Facts from the system and from the kernels' constants, as text and as JSON; see machine.h.
#include "harness/cli/machine.h"

#include <unistd.h>

#include <algorithm>

#include <fmt/ranges.h>

#include "core/base/affinity.h"
#include "core/base/cgroup.h"
#include "core/base/parallel.h"
#include "core/simd/bfloat16_product.h"
#include "core/simd/isa.h"
#include "core/simd/product.h"
#include "harness/measure/environment.h"
#include "harness/run/noise_floors.h"
#include "harness/tables/table.h"

namespace attn::cli {
namespace {

constexpr const char* kUnknown = "unknown";

std::optional<int64_t> asked_of_system(int name) {
  const int64_t value = ::sysconf(name);
  return value > 0 ? std::optional(value) : std::nullopt;
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json json_of_text(const std::string& text) { return text.empty() ? Json() : Json(text); }

std::string bytes_text(const std::optional<int64_t>& bytes) {
  return bytes ? human_bytes(static_cast<double>(*bytes)) : kUnknown;
}

// Each is of a mode, a number of threads and a length; --json has all of them.
std::string floors_text(const NoiseFloor& floors) {
  if (floors.empty()) return "unknown; attnbench noise measures it";
  const auto [least, most] =
      std::minmax_element(floors.begin(), floors.end(),
                          [](const FloorAt& a, const FloorAt& b) { return a.share < b.share; });
  return fmt::format("{:.2g} to {:.2g} % of a time, by mode, threads and length",
                     100 * least->share, 100 * most->share);
}

Json floors_json(const NoiseFloor& floors) {
  std::vector<Json> list;
  for (const FloorAt& floor : floors)
    list.push_back({{"mode", name_of(floor.mode)},
                    {"threads", floor.threads},
                    {"length", floor.length},
                    {"share", floor.share}});
  return list;
}

}  // namespace

Machine this_machine(const std::string& floors) {
  Machine machine;
  for (const EnvironmentField& field : environment())
    if (field.name == "cpu_model") machine.processor = field.value;
  machine.cores = asked_of_system(_SC_NPROCESSORS_ONLN).value_or(0);
  machine.allowed = allowed_cpus();
  machine.quota = cpu_quota();
  machine.caches = cache_sizes();
  machine.page = asked_of_system(_SC_PAGE_SIZE);
  if (const auto pages = asked_of_system(_SC_PHYS_PAGES); pages && machine.page)
    machine.memory = *pages * *machine.page;
  machine.sets = isas();
  machine.selected = isa();
  machine.bfloat16 = bfloat16_isa();
  machine.compiled = compiled_isa();
  machine.tile = tile_shape();
  machine.panel = kPanel;
  machine.forward = forward_sizes();
#ifdef ATTN_STD_THREADS  // as in parallel.cc
  machine.threading = "std::thread";
#else
  machine.threading = "OpenMP";
#endif
  machine.threads = hardware_threads();
  machine.floors = kept_floors(floors);
  return machine;
}

Json machine_json(const Machine& machine) {
  const ForwardSizes& forward = machine.forward;
  return {{"processor", json_of_text(machine.processor)},
          {"cores", machine.cores > 0 ? Json(machine.cores) : Json()},
          {"allowed_cpus", machine.allowed.empty() ? Json() : Json(machine.allowed)},
          {"cpu_quota", or_null(machine.quota)},
          {"cache_bytes",
           {{"L1d", or_null(machine.caches.l1d)},
            {"L2", or_null(machine.caches.l2)},
            {"L3", or_null(machine.caches.l3)}}},
          {"memory_bytes", or_null(machine.memory)},
          {"page_bytes", or_null(machine.page)},
          {"instruction_sets", machine.sets},
          {"kernel_instruction_set", machine.selected},
          {"bfloat16_instruction_set", machine.bfloat16},
          {"instruction_set", machine.compiled},
          {"product",
           {{"tile_rows", machine.tile.rows},
            {"tile_vectors", machine.tile.vectors},
            {"lanes", machine.tile.lanes},
            {"panel_columns", machine.panel}}},
          {"softmax_forward",
           {{"strip_queries", forward.strip},
            {"wide_strip_queries", forward.wide_strip},
            {"piece_keys", forward.piece},
            {"narrow_piece_keys", forward.narrow_piece},
            {"tile_queries_least", forward.tile_least},
            {"tile_queries_most", forward.tile_most}}},
          {"threading", machine.threading},
          {"threads", machine.threads},
          {"noise_floor", floors_json(machine.floors)}};
}

std::string machine_text(const Machine& machine) {
  std::string text = "machine\n";
  const auto add = [&](const char* name, const std::string& value) {
    text += fmt::format("  {:<17} {}\n", name, value);
  };
  const ForwardSizes& forward = machine.forward;
  add("processor", machine.processor.empty() ? kUnknown : machine.processor);
  add("cores",
      fmt::format("{} logical; this process may use {}{}",
                  machine.cores > 0 ? std::to_string(machine.cores) : kUnknown,
                  machine.allowed.empty() ? kUnknown
                                          : fmt::format("{} ({})", machine.allowed.size(),
                                                        fmt::join(machine.allowed, ",")),
                  machine.quota ? fmt::format(", {:g} cores' worth of time", *machine.quota) : ""));
  add("caches", fmt::format("L1d {}, L2 {}, L3 {}", bytes_text(machine.caches.l1d),
                            bytes_text(machine.caches.l2), bytes_text(machine.caches.l3)));
  add("memory",
      fmt::format("{} in pages of {}", bytes_text(machine.memory), bytes_text(machine.page)));
  add("instruction sets", fmt::format("{}; the kernels use {}, of bfloat16 {}, all other code {}",
                                      fmt::join(machine.sets, ", "), machine.selected,
                                      machine.bfloat16, machine.compiled));
  add("threads", fmt::format("{} at most, by {}", machine.threads, machine.threading));
  add("product",
      fmt::format("register tile of {} rows × {} vectors × {} lanes, panels of {} columns",
                  machine.tile.rows, machine.tile.vectors, machine.tile.lanes, machine.panel));
  add("softmax forward",
      fmt::format(
          "tiles of {} to {} queries (heads of 64), strips of {} or {}, pieces of {} or {} keys",
          forward.tile_least, forward.tile_most, forward.strip, forward.wide_strip, forward.piece,
          forward.narrow_piece));
  add("noise floor", floors_text(machine.floors));
  return text;
}

}  // namespace attn::cli
