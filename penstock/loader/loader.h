#pragma once

/// Assembles the rooms below into "next batch, ready on the device": the rows
/// of a data set after its one pass, or of arrays, and the loader that hands
/// out their batches.
#include "penstock/dataset/dataset.h"
#include "penstock/loader/batch.h"
#include "penstock/loader/batches.h"
