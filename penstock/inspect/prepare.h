#pragma once

#include <functional>
#include <string>

#include "penstock/job/job.h"

namespace penstock {

/// What prepare_job() tells while it works. All may be empty.
struct PrepareListener {
  /// A line for people: what is expected, and where the rows will be stored.
  std::function<void(const std::string& line)> note;
  /// How far the scan has come. Called by one thread at a time. What it throws
  /// ends the scan, as what is interrupted does.
  std::function<void(const ScanProgress&)> progress;
};

/// Where else prepare_job() writes the tokens, as export_tokens() does.
struct TokenExport {
  std::string format, dir;  ///< no format: nowhere
};

/// Fills the store of a job's rows ahead of training, wherever the job keeps
/// them: its runs then make no scan. Gives, for people and scripts, "documents"
/// (rows, where there are no tokens), "tokens", "invalid_utf8", "seconds",
/// "store", "bytes" of it, "already" (the store was there), "left_out", how
/// many rows are not in it, with "left_out_list", the file that lists those
/// that are not usable, "statistics", and where samples are packed "packing":
/// of the side train "efficiency", "cut", "rows", "max_length", "padding";
/// "export" as export_tokens() gives it. Throws what reading throws, and
/// Error(request), code prepare.sources, for several sources, and prepare.disk
/// where the store will not fit. What is interrupted leaves no store; where
/// rows have positions the next call continues where it was ("resumed": rows
/// that were there), with the same bytes.
Json prepare_job(const Job& job, const PrepareListener& listener, StopFlag stop,
                 const TokenExport& also = {});

/// Prepares one of several parts of a job's rows, on any machine that sees the
/// source and the folder of stores. "part", "of", "store", "already", "rows"
/// (of the source, in this part), "resumed", "seconds". Throws what reading
/// throws, what scan_part() throws, and prepare.sources.
Json prepare_part(const Job& job, const PartOfScan& which,
                  const PrepareListener& listener, StopFlag stop);

/// prepare_job() of parts that are there. Throws what check_parts_are_there()
/// throws.
Json commit_parts(const Job& job, const PrepareListener& listener,
                  StopFlag stop, const TokenExport& also = {});

}  // namespace penstock
