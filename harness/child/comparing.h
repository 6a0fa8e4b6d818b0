// What comparing answers may take, beside what is measured.
#pragma once

namespace attn {

// Comparing takes memory in double, which is none of the cell's: the limit is of what is measured.
void unlimit_memory();
// Seconds of evaluations of references, from what measuring took.
double comparing_budget(double measuring_s);

}  // namespace attn
