// The child writes one fixed block to a pipe; see equal_layers.h.
#include "harness/child/equal_layers.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "core/base/check.h"
#include "variants/catalog.h"

namespace attn {
namespace {

struct Found {
  LayerSizes sizes;
  std::array<char, 512> fault = {};  // "": none
};
static_assert(std::is_trivially_copyable_v<Found>);

Found search(LayersSpec layers, Equal equal) {
  Found found;
  try {
    layers.layer = equalised(layers, equal, exact_reference());
    found.sizes = sizes_of(layers);
  } catch (const std::exception& error) {
    std::strncpy(found.fault.data(), error.what(), found.fault.size() - 1);
  }
  return found;
}

// False where the writer ended without a whole block.
bool read_whole(int from, Found& found) {
  auto* const to = reinterpret_cast<char*>(&found);
  size_t done = 0;
  while (done < sizeof found) {
    const ssize_t count = read(from, to + done, sizeof found - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

}  // namespace

LayerSizes equal_layers(const LayersSpec& given, Equal equal) {
  std::array<int, 2> ends = {};
  ATTN_CHECK(pipe(ends.data()) == 0, "no pipe for the search of widths: {}", std::strerror(errno));
  const pid_t child = fork();
  ATTN_CHECK(child >= 0, "no process for the search of widths: {}", std::strerror(errno));
  if (child == 0) {
    close(ends[0]);
    const Found found = search(given, equal);
    const ssize_t written = write(ends[1], &found, sizeof found);  // at most PIPE_BUF: at once
    _exit(written == static_cast<ssize_t>(sizeof found) ? 0 : 1);
  }
  close(ends[1]);
  Found found;
  const bool is_whole = read_whole(ends[0], found);
  close(ends[0]);
  waitpid(child, nullptr, 0);
  if (!is_whole) throw CannotRun("the search of widths for equal layers did not end; memory?");
  if (found.fault[0] != 0) throw CannotRun(found.fault.data());
  return found.sizes;
}

Equal equal_of(const CellKey& key) { return key.axes.equal.value_or(Equal::width); }

}  // namespace attn
