// What a child process does for accuracy cells: the whole training, or a pilot of it; see
// one_cell.h. For one_cell.cc, and for trainings of variants in Python.
#pragma once

#include "harness/cell/request.h"
#include "harness/train/train.h"

namespace attn {

CellResult accuracy(const CellKey& key);

// What train() is asked for a cell with a task; sets the number of threads.
TrainRequest training_of(const CellKey& key);

// Of training: a step of the key's batch and an example of evaluation, from `asked.steps`
// steps of `asked.batch` sequences. Of shortcuts: their time.
PilotFigures pilot(const Request& asked);

}  // namespace attn
