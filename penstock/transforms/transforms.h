#pragma once

/// What is done to records. A `FieldKind` is an entry of a job's `fields`
/// section: over the columns of a source it parses blocks into values, finds
/// statistics of them, and encodes them into the form that is kept.
/// A `BatchOperation` is an entry of a loader's `operations`: it changes whole
/// batches of finished samples. One folder per kind.
///
///     std::vector<Field> fields = parse_fields(
///         Json::parse(R"({"place": {"columns": ["lat", "lon"]}})", "test"),
///         "fields");
///     RowLayout row = layout_of(fields);  // place: float32 [2]
///     std::printf("%zu bytes a row\n", row.row_bytes);
#include "penstock/transforms/batch_operation.h"
#include "penstock/transforms/category/category.h"
#include "penstock/transforms/checked_kind.h"
#include "penstock/transforms/field_kind.h"
#include "penstock/transforms/fields.h"
#include "penstock/transforms/json_set/json_set.h"
#include "penstock/transforms/mixup/mixup.h"
#include "penstock/transforms/multi_hot/multi_hot.h"
#include "penstock/transforms/named_files.h"
#include "penstock/transforms/numbers/numbers.h"
#include "penstock/transforms/operations.h"
#include "penstock/transforms/standardization.h"
#include "penstock/transforms/time/time.h"
