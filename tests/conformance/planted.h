// Variants, tasks and decoders, right and with one fault at a time: what the contract checks must
// catch. The results of checks as texts.
#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "harness/check/result.h"
#include "tasks/api/task.h"
#include "variants/api/decoder.h"
#include "variants/api/variant_info.h"

namespace attn {

TaskInfo tiny_task();       // the label is the sum of two tokens modulo 4
TaskInfo tiny_read_task();  // the same as if read from files of 20 examples each
// A number to predict, an output sequence, edges, values in place of tokens, two documents, and a
// label for each position.
std::vector<TaskInfo> tiny_tasks_of_each_answer();

struct BrokenTask {
  TaskInfo info;
  std::vector<std::string> red;  // the checks that must fail, in the order in which they run
};
void PrintTo(const BrokenTask& broken, std::ostream* out);
std::vector<BrokenTask> broken_tasks();

// Textbook attention, right and with one fault at a time: what each contract check must catch, and
// nothing else.

// Softmax attention composed from ops; keeps every promise that a variant can make.
VariantInfo textbook();
// The same with wrong gradients of keys, which it declares.
VariantInfo surrogate();
// Throws at length 7.
VariantInfo throwing();

struct BrokenVariant {
  VariantInfo info;
  std::vector<std::string> red;  // the checks that must fail, in the order in which they run
};
void PrintTo(const BrokenVariant& broken, std::ostream* out);
std::vector<BrokenVariant> broken_variants();

// Decoding as in a textbook, right and with one fault at a time: what the check `decode` must
// catch.

enum class DecoderFault {
  none,
  short_ring,           // one slot too few: the last position takes that of the first
  not_rescaled,         // a new highest logit leaves the sums of the earlier ones as they are
  prefill_lost,         // of the positions appended at once, the last is left out
  tiled_keys,           // where query heads share keys, head h uses those of head h % kv_heads
  hidden_state,         // holds a few numbers more than it declares
  grows,                // keeps something of every step
  never_back,           // counts its positions itself: a step that is taken back stays
  uncounted_flops,      // declares half of its FLOPs
  uncounted_bytes,      // declares half of its bytes
  second_extend_first,  // a second prefill is written over the first
  shared_state,         // all decoders use one cache
  changes_its_input,    // scales the query where it stands
  extend_after_a_step,  // appends after a step what was prefilled before it
  odd_chunk_end,        // a later chunk that ends at position 5 of 8 loses its last position
  chunk_of_one          // a later chunk of one position is written over the one before
};
std::unique_ptr<Decoder> textbook_decoder(const Shape& position, int64_t capacity,
                                          DecoderFault fault);

// Wrong variants that users might write, each caught by the check that is meant to: faults that
// show at some sizes, under some masks, in some channels or in the backward pass alone.

struct PlantedVariant {
  VariantInfo info;
  std::string caught_by;  // the check that must fail; others may fail too
  bool at_quick = true;   // whether it must fail at the level that `run` asks for
  bool throws = false;    // whether the check cannot measure it
};
void PrintTo(const PlantedVariant& planted, std::ostream* out);
// The variant without a fault passes every check.
VariantInfo faultless(bool referenced);
VariantInfo faultless_gated(bool referenced);
std::vector<PlantedVariant> planted_variants();
// Of them: faults at sizes beyond the usual ones, after other calls, and in weights and requests
// for gradients.
std::vector<PlantedVariant> planted_at_edges();
// Of them: faults of what is read at each position beside queries, keys and values.
std::vector<PlantedVariant> planted_gates();
// Of them: faults of one kind of pass alone, in costs and in decode steps.
std::vector<PlantedVariant> planted_passes();

// A fault that shows at one shape alone, which a sweep publishes.
struct PlantedAtShape {
  VariantInfo info;
  AttentionShape shape;  // heads, head_dim and causality
};
std::vector<PlantedAtShape> planted_at_shapes();

// The results of contract checks as texts that a failed test prints and compares.

inline std::string lines(const std::vector<attn_check::Result>& results) {
  std::string all;
  for (const attn_check::Result& r : results)
    all += fmt::format("{} {}: {}\n", r.subject, r.name, r.detail);
  return all;
}

inline std::vector<std::string> red(const std::vector<attn_check::Result>& results) {
  std::vector<std::string> names;
  for (const attn_check::Result& result : results)
    if (result.outcome == attn_check::Outcome::failed) names.push_back(result.name);
  return names;
}

}  // namespace attn
