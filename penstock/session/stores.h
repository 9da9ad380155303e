#pragma once

#include <chrono>
#include <filesystem>
#include <memory>

#include "penstock/base/json.h"
#include "penstock/dataset/dataset.h"
#include "penstock/job/job.h"

namespace penstock {

// The stores in which prepared rows are kept from run to run, for people: each
// function gives a document. A store is a file whose name is 32 hexadecimal
// digits and ".store"; others are not touched. Stores may come and go
// meanwhile. A folder that is not there is an Error(request), code
// cache.no_folder, unless it is the default one.

/// The stores of a folder, the last used first: "dir", "bytes" of all, and
/// "stores" with "path", "bytes", "used" (UTC), "source", "rows",
/// "fingerprint", or, where it cannot be used, "unusable".
Json list_stores(const std::filesystem::path& dir);

/// The store of a folder that was used last, of those that hold rows of the
/// source and the columns of these options; null: none.
std::shared_ptr<const Store> store_of_source(
    const TableDatasetOptions& options);

/// Whether the next run of a job makes a scan: "hit", "store" (its path),
/// "why" for people; after a miss "nearest" and "differs", a list of "part",
/// "stored" and "now", where a store of the same source is there. Opens the
/// source, and throws what that throws.
Json why_store(const Job& job);
/// The same of rows of one source, which is open.
Json why_store(const TableDatasetOptions& options, const BoundSource& source);

/// Where prepare_job() lists the rows that are not usable: beside their store.
std::filesystem::path left_out_list(const std::filesystem::path& store);

/// Removes the stores of a folder that were not used for so long, and what
/// writers left that were killed. With `dry` nothing is removed. "removed", as
/// the stores of list_stores(), with "failed" where the system refused; "bytes"
/// of those that are gone, "kept".
Json prune_stores(const std::filesystem::path& dir,
                  std::chrono::system_clock::duration unused, bool dry);

/// Reads every byte of the stores of a folder: "stores" as above, with
/// "damaged" where bytes are not those that were written; "sound", how many
/// are.
Json verify_stores(const std::filesystem::path& dir);

}  // namespace penstock
