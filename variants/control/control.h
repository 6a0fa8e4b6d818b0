// Controls: what needs no attention at all.
//   running_mean.h  the mean of the visible values: 2·n·width FLOPs
#pragma once

#include "variants/control/running_mean.h"
