// State spaces: states that each decay by a factor of their own, written to and read at every
// position: variants mamba (selective_scan.h), s4d (constant_scan.h), h3 (shift_filter.h and
// constant_scan.h) and lru (complex_scan.h). The states of all positions are never stored: time
// O(n·channels·states), memory O(n·channels). moving_average.h has the exponential averages of
// mega.
#pragma once

#include "variants/scans/bilinear.h"
#include "variants/scans/complex_scan.h"
#include "variants/scans/constant_scan.h"
#include "variants/scans/moving_average.h"
#include "variants/scans/selective_scan.h"
#include "variants/scans/shift_filter.h"
#include "variants/scans/start_states.h"
#include "variants/scans/zero_order_hold.h"
