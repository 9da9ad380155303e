#pragma once

#include "penstock/job/job.h"

namespace penstock {

/// What must be the same on all ranks, for compare_ranks(): settings by their
/// names in the job, the tensors of a batch, the number of rows and their
/// fingerprint. Not where the source is: ranks may read copies of one table.
/// Of large arrays the fingerprint is that of 4,096 rows, evenly spread.
Json facts_of(const Job& job, Side side, const Rank& rank, std::int64_t batches,
              const Order& order, const Dataset& rows);

/// For one of several ranks that cannot ask the others: throws Error(request)
/// where the job does not name its rows by `source.fingerprint`, of several
/// sources those of each.
void check_named_rows(const Rank& rank, const Job& job, const Dataset& rows);

}  // namespace penstock
