#pragma once

/// What is done to records. `Preparer` turns a block of a source into raw rows
/// (float64, a pure function of the bytes); `fit` finds mean and deviation;
/// `pack_row` standardises and rounds a raw row into the bytes of its tensors,
/// and `Scale` undoes a standardisation.
#include "penstock/transforms/fields.h"
#include "penstock/transforms/fit.h"
#include "penstock/transforms/pack.h"
#include "penstock/transforms/prepare.h"
#include "penstock/transforms/scale.h"
