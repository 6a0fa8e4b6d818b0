// Controls: baselines without attention.
//   running_mean.h  the mean of the visible values: 2·n·width FLOPs
#pragma once

#include "variants/control/running_mean.h"
