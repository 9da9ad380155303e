#pragma once

/// Assembles the rooms below into "next batch, ready on the device": the one
/// pass that prepares a data set, and the loader that hands out its batches.
#include "penstock/loader/batch.h"
#include "penstock/loader/batches.h"
#include "penstock/loader/dataset.h"
