// A validator for the part of JSON Schema (draft 2020-12) that results/schema.json uses; any other
// keyword is an Error.
#pragma once

#include <string>

#include "harness/store/rows.h"

namespace attn {

// Empty when `value` keeps `schema`; otherwise the first fault with its path, "axes.length:
// expected an integer, got a string".
std::string json_schema_fault(const Json& schema, const Json& value);

const Json& row_schema();  // results/schema.json, as it was when the program was built

}  // namespace attn
