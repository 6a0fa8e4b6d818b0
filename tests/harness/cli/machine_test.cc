// What `list machine` reads off the system, where it is there and where it is not.
#include "harness/cli/machine.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/simd/product.h"

namespace attn::machine_test {
namespace {

TEST(Machine, IsTheOneThatComputes) {
  const cli::Machine found = cli::this_machine("");
  EXPECT_NE(std::count(found.sets.begin(), found.sets.end(), found.selected), 0);
  EXPECT_EQ(found.tile.rows, kTileRows);
  EXPECT_EQ(found.panel, kPanel);
  EXPECT_GE(found.threads, 1);
  EXPECT_GE(found.cores, 1);
  EXPECT_GE(found.page.value(), 512);
  EXPECT_GT(found.memory.value(), found.page.value());
  EXPECT_GE(found.forward.tile_most, found.forward.tile_least);
  EXPECT_GT(found.forward.strip, 0);
  EXPECT_GT(found.forward.piece, 0);
  const Json json = cli::machine_json(found);
  EXPECT_EQ(json["product"]["lanes"], found.tile.lanes);
  EXPECT_EQ(json["kernel_instruction_set"], found.selected);
  EXPECT_EQ(json["softmax_forward"]["tile_queries_most"], found.forward.tile_most);
  const std::string text = cli::machine_text(found);
  EXPECT_NE(text.find(fmt::format("{} rows × {} vectors × {} lanes", found.tile.rows,
                                  found.tile.vectors, found.tile.lanes)),
            std::string::npos)
      << text;
}

TEST(Machine, WhatIsNotKnownIsSaidToBeUnknown) {
  const Json json = cli::machine_json({});
  for (const char* name : {"processor", "cores", "allowed_cpus", "memory_bytes", "page_bytes"})
    EXPECT_TRUE(json[name].is_null()) << name;
  for (const char* level : {"L1d", "L2", "L3"})
    EXPECT_TRUE(json["cache_bytes"][level].is_null()) << level;
  const std::string text = cli::machine_text({});
  EXPECT_NE(text.find("L1d unknown, L2 unknown, L3 unknown"), std::string::npos) << text;
  EXPECT_NE(text.find("unknown logical; this process may use unknown"), std::string::npos) << text;
}

TEST(Machine, FloorsAreASpan) {
  cli::Machine machine;
  machine.floors = {{.length = 64, .share = 0.031}, {.length = 128, .share = 0.012}};
  EXPECT_NE(cli::machine_text(machine).find("1.2 to 3.1 %"), std::string::npos);
  EXPECT_EQ(cli::machine_json(machine)["noise_floor"].size(), 2u);
}

}  // namespace
}  // namespace attn::machine_test
