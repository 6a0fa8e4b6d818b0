// The checks of variants, one function each, grouped by source. contract.cc lists the checks with
// the traits that they apply to. A check runs the variant at the shapes of its subject and adds its
// measurements to the verdict.
#pragma once

#include "harness/check/subject.h"

namespace attn {

// masks.cc
void check_causality(const Subject& subject, Verdict& verdict);
void check_padding(const Subject& subject, Verdict& verdict);
void check_empty_rows(const Subject& subject, Verdict& verdict);
// algebra.cc
void check_linearity(const Subject& subject, Verdict& verdict);
void check_convexity(const Subject& subject, Verdict& verdict);
void check_permutation(const Subject& subject, Verdict& verdict);
void check_range(const Subject& subject, Verdict& verdict);
// independence.cc
void check_channels(const Subject& subject, Verdict& verdict);
void check_batch(const Subject& subject, Verdict& verdict);
void check_heads(const Subject& subject, Verdict& verdict);
void check_queries(const Subject& subject, Verdict& verdict);
void check_rowwise(const Subject& subject, Verdict& verdict);
// packed.cc
void check_packed(const Subject& subject, Verdict& verdict);
// edges.cc
void check_edges(const Subject& subject, Verdict& verdict);
// gradients.cc
void check_gradients(const Subject& subject, Verdict& verdict);
// reference.cc
void check_reference(const Subject& subject, Verdict& verdict);
// carried.cc
void check_carried(const Subject& subject, Verdict& verdict);
// bfloat16.cc
void check_bfloat16(const Subject& subject, Verdict& verdict);
// typed_cache.cc
void check_typed_cache(const Subject& subject, Verdict& verdict);
// limits.cc
void check_exact(const Subject& subject, Verdict& verdict);
void check_limit(const Subject& subject, Verdict& verdict);
// calls.cc
void check_calls(const Subject& subject, Verdict& verdict);
void check_weights(const Subject& subject, Verdict& verdict);
// cost.cc
void check_flops(const Subject& subject, Verdict& verdict);
void check_memory(const Subject& subject, Verdict& verdict);
// decoding.cc
void check_decode(const Subject& subject, Verdict& verdict);
// determinism.cc
void check_determinism(const Subject& subject, Verdict& verdict);
void check_recording(const Subject& subject, Verdict& verdict);
void check_threads(const Subject& subject, Verdict& verdict);

// The precision of a check of a catalogue variant in the float program.
enum class Precision { as_built, double_in_full, also_double, only_double };

struct VariantCheck {
  const char* name;
  void (*run)(const Subject&, Verdict&);
  bool (*applies)(const VariantInfo&);
  bool quick;
  Precision precision;
  bool at_published =
      false;  // also runs with the shapes that a sweep publishes, see check_variant_at
};
const std::vector<VariantCheck>& variant_check_table();
attn_check::Result run_check(const VariantCheck& check, const Subject& subject);

}  // namespace attn
