#pragma once

#include <cstdint>
#include <string>

#include "penstock/base/json.h"
#include "penstock/sources/sources.h"

namespace penstock {

/// A job over a source unchanged, without a model, to measure what its rows
/// take to read: pictures of 224 x 224 where it is one of pictures; else all
/// numbers without NULL as one field "numbers", and each column of texts
/// without NULL as a field of its name. What its columns hold is found out by
/// reading it once. `uri`: as a job's `source` names it. Throws Error(request)
/// where no column can be used, code bench.no_columns, what opening and reading
/// throw, and the error of an interrupted read when `stop` is set.
Json job_of_source(const std::string& uri, std::int64_t batch_size,
                   StopFlag stop = {});

}  // namespace penstock
