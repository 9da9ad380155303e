#pragma once

/// What batches are made of: numbered rows that can be selected and filled,
/// whether they come from a table after its initial scan, from arrays, or from
/// a function.
///
///     TableDatasetOptions options{{.source = spec, .fields = fields}};
///     auto rows = TableDataset::prepare(options, device);
///     std::printf("%lld rows, fingerprint %s\n",
///                 static_cast<long long>(rows->rows()),
///                 rows->fingerprint().c_str());
#include "penstock/dataset/arrays/array_dataset.h"
#include "penstock/dataset/arrays/function_dataset.h"
#include "penstock/dataset/bad_row_json.h"
#include "penstock/dataset/batch_layout.h"
#include "penstock/dataset/dataset_base.h"
#include "penstock/dataset/dataset_facts.h"
#include "penstock/dataset/growing/growing_dataset.h"
#include "penstock/dataset/indexed/indexed_dataset.h"
#include "penstock/dataset/mixed/mixed_dataset.h"
#include "penstock/dataset/mixed/prepare_mixed.h"
#include "penstock/dataset/opened_source.h"
#include "penstock/dataset/packed/later_rows.h"
#include "penstock/dataset/packed/packed_bins.h"
#include "penstock/dataset/packed/packed_dataset.h"
#include "penstock/dataset/prepare_dataset.h"
#include "penstock/dataset/row_place.h"
#include "penstock/dataset/side_lengths.h"
#include "penstock/dataset/streamed/row_stream.h"
#include "penstock/dataset/table/part_scan.h"
#include "penstock/dataset/table/preparation_plan.h"
#include "penstock/dataset/table/table_dataset.h"
