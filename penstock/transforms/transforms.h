#pragma once

/// What is done to records. A `FieldKind` is an entry of a job's `fields`
/// section: over the columns of a source it parses blocks into values, finds
/// statistics of them, and encodes them into the form that is kept.
/// One folder per kind.
#include "penstock/transforms/field_kind.h"
#include "penstock/transforms/fields.h"
#include "penstock/transforms/json_set/json_set.h"
#include "penstock/transforms/numbers/numbers.h"
#include "penstock/transforms/standardization.h"
