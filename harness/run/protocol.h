// The protocol behind a number: what this program settles about how figures are taken, as data with
// a name and a hash. A name has one definition: whoever changes a default that is part of it gives
// the protocol another name (tests/data/protocols holds the definitions).
#pragma once

#include <string>
#include <vector>

#include "harness/plan/plan.h"

namespace attn {

inline constexpr const char* kProtocolName = "attnbench-2";
inline constexpr const char* kProtocolField = "protocol";  // of a run line

// What `attnbench protocol` prints: profiles with the hashes of their texts, defaults of axes and
// trainings, statistics, marks of disturbed times, seeds, verification. Made from the code that
// measures, so that a program whose defaults were changed has another hash. The hash is of this
// alone: of code that has no value here, such as that of a variant, it says nothing.
Json protocol_definition();
const std::string& protocol_hash();  // of the definition, 16 hexadecimal digits
std::string protocol_page();         // the definition for people

// What the run line of a sweep says: {"name", "hash", "departs"}, see departures().
Json protocol_of(const SweepRequest& request);
// The same for people: "attnbench-1 (0123456789abcdef), departs in length, timeout"; "" where a run
// line of an earlier version has none.
std::string protocol_words(const Json& of_run_line);

}  // namespace attn
