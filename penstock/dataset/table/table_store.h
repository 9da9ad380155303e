#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/file_lock.h"
#include "penstock/base/held_memory.h"
#include "penstock/base/json.h"
#include "penstock/base/key.h"
#include "penstock/base/once.h"
#include "penstock/cache/cache.h"
#include "penstock/dataset/table/table_options.h"

namespace penstock {

/// The store in which the prepared rows of a table are kept from run to run.
struct TableStore {
  std::filesystem::path path;
  /// All that decides its contents, in named parts. The file is named after
  /// its hash, so that rows which are prepared otherwise have another file.
  Json recipe;
  /// Why the store of an earlier run cannot be used; empty: it can.
  std::string why_not;
};

/// That of these options, in `options.store_dir`. No file is opened.
/// `statistics`: of rows that are encoded with those of the options, which
/// were not found in the rows themselves.
TableStore table_store(const TableDatasetOptions& options, const Source& source,
                       bool statistics);

/// False where rows may have changed since an earlier run and nobody knows.
bool says_when_it_changes(const SourceSpec& spec, const Source& source);

/// A scan of these options writes a store that others can use, whatever memory
/// there is.
bool always_writes_store(const TableDatasetOptions& options,
                         const TableStore& store);

/// The file of the turn to write a store.
std::filesystem::path lock_of(const TableStore& store);

/// Waits while another process, such as another rank of this job, scans these
/// rows to write their store; the turn then lasts as long as `turn`. Throws as
/// a stopped read does. True where it had to wait.
bool wait_for_turn(FileLock& turn, const TableDatasetOptions& options,
                   const TableStore& store);

/// Checks what a run reads of a store of so many fields before its first batch.
/// Throws Error(source), store.damaged.
void check_what_is_read_first(const Store& store, std::size_t fields);

/// A file that a column names and that has changed since the rows were stored;
/// empty: none has. Throws Error(source), store.damaged.
std::string changed_file_of(const Store& store);

/// The keys of all rows of a store. Throws Error(source), store.damaged.
KeyList keys_of(const Store& store, ColumnType type);
/// The statistics that its rows were encoded with, by field; null where a field
/// has none.
std::vector<Json> stored_statistics(const Store& store,
                                    const std::vector<Field>& fields);

/// Stores are read, and may be written.
bool uses_stores(const RowsKeeping& options);

/// Throws Error(request) where a store is to be written to a folder in which
/// this user can write nothing: before the scan. Of a plan nothing is made.
void check_store_dir(const TableDatasetOptions& options);

/// Where stores and temporary files are.
std::filesystem::path store_dir(const RowsKeeping& options);

/// Where stores are unless a job says otherwise: `penstock/stores` in the
/// user's cache folder ($XDG_CACHE_HOME, or ~/.cache).
std::filesystem::path default_store_dir();

/// The keys of a table's rows; those of a store are read, and checked, when
/// they are first asked for. Thread-safe.
class TableKeys {
 public:
  explicit TableKeys(KeyList known) : keys_(std::move(known)) {
    charge_.change_to(keys_.memory());
  }
  TableKeys(std::shared_ptr<const Store> store, ColumnType type)
      : store_(std::move(store)), keys_(type) {}

  /// Throws Error(source), code store.damaged.
  const KeyList& list() const;
  /// As they are stored.
  std::size_t bytes() const;

 private:
  std::shared_ptr<const Store> store_;
  mutable Once read_;
  mutable KeyList keys_;
  mutable MemoryCharge charge_{HeldFor::keys, HeldIn::host, 0};
};

}  // namespace penstock
