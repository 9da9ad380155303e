#pragma once

#include "penstock/base/json.h"
#include "penstock/job/job.h"

namespace penstock {

/// All rows of a source, read once by `workers` threads: what is wrong with
/// them, and what each column holds, as peek() has it. Pictures and sounds are
/// decoded, those of a table where the first rows of its column are such.
///
///     {source, rows, seconds, bad_rows, bad: [{row, column, why}], columns,
///      left_out: [{name, why, next}]}
///
/// `bad` has at most 1,000, by key, one of each row; where keys come more than
/// once, `duplicate_keys` says how many do; `left_out` stands there where
/// something is. Throws what opening the source for
/// a job throws, and the error of an interrupted read when `stop` is set.
Json check_source(const SourceSpec& spec, int workers, StopFlag stop);

/// The same with the eyes of a job: the rows that its fields, its split and its
/// weights cannot use, whatever its `source.on_bad`; in place of `columns`:
///
///     {too_short, train, val, fields: [NAME, ...], no_batch}
///
/// `no_batch` says why no batch can be made of the train rows; null: some can.
/// Of several sources the sums, each of "bad" with its "source", and "sources",
/// the same of each. Nothing is kept. Throws what preparing these rows throws
/// but for rows that are not usable.
Json check_job(const Job& job, StopFlag stop);

}  // namespace penstock
