#include <algorithm>
#include <cstring>

#include "penstock/base/host_limits.h"
#include "penstock/dataset/bad_row_json.h"
#include "penstock/dataset/indexed/expected_rows.h"
#include "penstock/dataset/opened_source.h"
#include "penstock/dataset/table/store_of_scan.h"
#include "penstock/dataset/table/store_remaker.h"
#include "penstock/dataset/table/table_dataset.h"

// What a table's store holds, besides the document about it: "rows", packed in
// order of id; of field N with a run "lengths/N", int32, and "runs/N"; "keys"
// and "key_bytes" as KeyList has them; "sides", a byte a row; where rows are
// drawn "draws", of those on the side train what draws_of() takes; and where
// columns name files that fields read "files", named_files_of() takes them.

namespace penstock {
std::optional<std::size_t> TableDataset::disk_free(
    const HostLimits& host) const {
  const std::filesystem::path folder = store_dir(options_);
  const std::optional<std::size_t>& budget = options_.budgets.disk;
  bool automatic = options_.cache == "auto" &&
                   (budget ? *budget > 0 : why_not_a_disk(folder).empty());
  if (!rows_in_store() && options_.cache != "disk" && !automatic)
    return std::nullopt;
  std::size_t free = free_bytes(folder).value_or(0);
  // A store is mapped. One that cannot be used makes room for the new one.
  std::error_code none;
  const auto unusable =
      rows_in_store() ? 0 : std::filesystem::file_size(store_file_.path, none);
  if (!rows_in_store() && !none) free += static_cast<std::size_t>(unusable);
  if (begun_ != nullptr) free += begun_->lengths()->bytes();  // it has those
  return std::min(free, host.addresses_free.value_or(free));
}

void TableDataset::pack_all(const RowsById& rows, const ShareOut& share_out,
                            StoreWriter& store) {
  begin_rows(store, runs_alone());
  pack_by_id(rows, share_out, &store);
}

std::shared_ptr<const Store> TableDataset::pack_to_store(
    const RowsById& rows, const ShareOut& share_out) {
  const std::vector<std::byte> sides = sides_of(rows);  // packing frees them
  std::vector<std::uint64_t> draws;
  if (options_.drawing) draws = draws_in(rows);
  log(LogLevel::info, "writing " + store_file_.path.string());
  std::error_code none;
  if (!options_.anew)
    std::filesystem::remove(store_file_.path, none);  // it could not be used
  std::optional<StoreWriter> whole;
  if (begun_ == nullptr) {
    real_files().make_folders(store_file_.path.parent_path(), Readers::owner);
    pack_all(rows, share_out, whole.emplace(real_files(), store_file_.path));
  } else {
    encoder();  // refuses statistics of another field
    runs_[0] = begun_->lengths();
    for (ParsedBlock& block : rows.blocks) block = ParsedBlock();
  }
  StoreWriter& writer = whole ? *whole : begun_->writer();
  for (std::size_t f = 0; f < runs_.size(); ++f) {
    if (runs_[f] == nullptr) continue;
    writer.begin("lengths/" + std::to_string(f));
    writer.append(std::as_bytes(runs_[f]->lengths()));
    if (runs_alone()) continue;
    writer.begin("runs/" + std::to_string(f));
    writer.append(runs_[f]->all());
  }
  writer.begin("keys");
  writer.append(std::as_bytes(keys().numbers()));
  writer.begin("key_bytes");
  writer.append(std::as_bytes(std::span(keys().characters())));
  writer.begin("sides");
  writer.append(sides);
  if (options_.drawing) {
    writer.begin("draws");
    writer.append(std::as_bytes(std::span(draws)));
  }
  if (!named_files_.empty()) {
    writer.begin("files");
    writer.append(bytes_of(named_files_).span());
  }
  Json about;
  about["recipe"] = store_file_.recipe;
  about["source"] = source_->shown();
  about["opened"] = opened_json(options_, *source_);
  about["rows"] = rows.count();
  about["fingerprint"] = fingerprint_;
  about["statistics"] = statistics();
  about["too_short"] = scan_->too_short;
  about["bad_rows"] = scan_->bad_rows;
  about["quarantine"] = Json(Json::Array{});
  for (const BadRow& bad : scan_->quarantine)
    about["quarantine"].push_back(json_of(bad));
  about["damaged"] = json_of(damaged_);
  writer.seal(about);
  begun_.reset();
  auto store = std::make_shared<const Store>(real_files(), store_file_.path);
  use_rows(store);
  return store;
}

void TableDataset::use_rows(const std::shared_ptr<const Store>& store) {
  store_ = store;
  if (layout_.row_bytes > 0)
    table_ = std::make_unique<Table>(store, "rows", layout_.row_bytes);
  runs_.clear();
  for (std::size_t f = 0; f < options_.fields.size(); ++f) {
    std::size_t element = options_.fields[f].kind->facts().stored.element_bytes;
    std::string number = std::to_string(f);
    runs_.push_back(element == 0 ? nullptr
                                 : std::make_shared<RunTable>(
                                       element, store, "lengths/" + number,
                                       "runs/" + number));
  }
}

// A run that is resumed brings the statistics that its rows were encoded with:
// its store is the one that was made when they were found, and else one of its
// own, which is also what is written.
bool TableDataset::take_from_store(Device& device) {
  if (!uses_stores(options_)) return false;
  for (bool statistics : {false, true}) {
    if (statistics && !options_.statistics) break;
    store_file_ = table_store(options_, *source_, statistics);
    std::shared_ptr<const Store> store = take_rows();
    if (store == nullptr) continue;
    measure_stored_runs();
    plan_tier(facts_.rows, device, std::nullopt);
    if (options_.plan_only) return true;
    try {
      if (plan().tier != Tier::disk || plan().places.size() > 1)
        copy_to_tiers(store, device);
    } catch (const Error& error) {
      scan_anew(error);
      continue;
    }
    find_lengths();
    log(LogLevel::info, "no initial scan is needed: the rows are in " +
                            store_file_.path.string());
    return true;
  }
  return false;
}

std::shared_ptr<const TableDataset> TableDataset::of_store(
    const TableDatasetOptions& options, BoundSource source, Device& device) {
  const std::string shown = source.source->shown();
  std::shared_ptr<TableDataset> set(new TableDataset(options));
  set->begin(std::move(source));
  if (!set->take_from_store(device)) return nullptr;
  check_fingerprint(*set, options.source.fingerprint, shown);
  return set;
}

std::shared_ptr<const Store> TableDataset::take_rows() {
  std::error_code unknown;
  if (!std::filesystem::exists(store_file_.path, unknown)) return nullptr;
  if (!store_file_.why_not.empty()) {
    log(LogLevel::info,
        "rows of an earlier run are not used: " + store_file_.why_not);
    return nullptr;
  }
  for (bool rebuilt : {false, true}) try {
      auto store =
          std::make_shared<const Store>(real_files(), store_file_.path);
      store->repair_with(
          [remaker = remaker()](const Store& damaged, const std::string& array,
                                std::size_t begin, std::span<std::byte> out) {
            remaker->remake(damaged, array, begin, out);
          });
      if (options_.statistics &&
          *store->about().find("statistics") != *options_.statistics)
        return nullptr;
      check_what_is_read_first(*store, options_.fields.size());
      if (const std::string changed = changed_file_of(*store);
          !changed.empty()) {
        log(LogLevel::warning, "rows of an earlier run are not used: '" +
                                   changed + "' has changed since");
        return nullptr;
      }
      use_rows(store);
      take_what_is_known(store);
      // When it was last used, for who wants to remove those that are not.
      std::filesystem::last_write_time(
          store_file_.path, std::filesystem::file_time_type::clock::now(),
          unknown);
      return store;
    } catch (const Error& error) {
      if (!rebuilt && rebuild_store(error)) continue;
      scan_anew(error);
      break;
    }
  return nullptr;
}

std::shared_ptr<const StoreRemaker> TableDataset::remaker() const {
  return std::make_shared<const StoreRemaker>(options_, source_, parsing_,
                                              layout_);
}

/// Of a store that is damaged where it says what it holds, so that nothing of
/// it can be used. False: it stays unchanged.
bool TableDataset::rebuild_store(const Error& error) const {
  if (error.kind() != ErrorKind::source || options_.plan_only ||
      source_->facts().of_store)
    return false;
  log(LogLevel::warning,
      "the store is damaged and is made again from the source: " +
          std::string(error.what()));
  FileLock turn;
  try {
    wait_for_turn(turn, options_, store_file_);
    remaker()->rebuild(store_file_.recipe.find("statistics") != nullptr);
  } catch (const Error& failed) {
    if (is_stop(failed)) throw;
    log(LogLevel::warning,
        "the store could not be made again: " + std::string(failed.what()));
    return false;
  }
  return true;
}

/// After an error of the store, which is forgotten.
void TableDataset::scan_anew(const Error& error) {
  if (error.kind() != ErrorKind::source) throw;
  log(LogLevel::warning,
      std::string("the rows are scanned again: ") + error.what());
  table_.reset();
  runs_.clear();
  fitted_->statistics.clear();
  longest_runs_.clear();
  run_bytes_ = key_bytes_ = larger_bytes_ = 0;
  facts_.longest.clear();
}

void TableDataset::remove_damaged(const Error& error) const {
  ErrorParts parts = error.parts();
  if (parts.code != "store.damaged" || source_->facts().of_store) return;
  std::error_code failed;
  std::filesystem::remove(store_file_.path, failed);
  if (failed) return;
  parts.next =
      "start again, which makes a new store from the source; and check the "
      "disk";
  throw Error(error.kind(), std::move(parts));
}

/// Each block of the store is checked on its way.
void TableDataset::copy_to_tiers(const std::shared_ptr<const Store>& store,
                                 Device& device) {
  if (table_ != nullptr) {
    const Store::Array& rows = store->find("rows");
    std::unique_ptr<Table> table;
    try {
      table = std::make_unique<Table>(plan().places, layout_.row_bytes, device,
                                      store, "rows");
    } catch (const Error& error) {
      if (!plans_again(error, device)) throw;
      if (plan().places == std::vector<TierRows>{{Tier::disk, facts_.rows}})
        return;
      return copy_to_tiers(store, device);
    }
    for (SampleId first = 0; std::int64_t count = table->most_rows();) {
      std::size_t begin = static_cast<std::size_t>(first) * layout_.row_bytes;
      std::size_t bytes = static_cast<std::size_t>(count) * layout_.row_bytes;
      rows.check(begin, begin + bytes);
      std::memcpy(table->append(count), rows.bytes().data() + begin, bytes);
      first += count;
    }
    table->seal();
    table_ = std::move(table);
  }
  for (std::shared_ptr<RunTable>& stored : runs_) {
    if (stored == nullptr) continue;
    auto runs = std::make_shared<RunTable>(stored->element_bytes(), true);
    for (std::int64_t row = 0; row < stored->rows(); ++row)
      runs->append(stored->row(row));
    stored = std::move(runs);
  }
  move_runs(device);
}

void TableDataset::take_what_is_known(
    const std::shared_ptr<const Store>& store) {
  const Json& about = store->about();
  fingerprint_ = about.find("fingerprint")->string();
  scan_->too_short = about.find("too_short")->integer();
  scan_->bad_rows = about.find("bad_rows")->integer();
  scan_->quarantine.clear();
  for (const Json& bad : about.find("quarantine")->array())
    scan_->quarantine.push_back(bad_row_of(bad));
  damaged_ = damaged_rows_of(*about.find("damaged"));
  fitted_->statistics = stored_statistics(*store, options_.fields);
  const std::size_t rows =
      static_cast<std::size_t>(about.find("rows")->integer());
  // Texts that name rows by position are the source's.
  const ColumnType key =
      source_->abilities().by_key ? source_->facts().key : ColumnType::int64;
  const std::size_t keys = key == ColumnType::uuid
                               ? store->array("key_bytes").size() / 16
                               : store->array("keys").size() / 8;
  if (keys != rows || store->array("sides").size() != rows ||
      store->array("rows").size() != rows * layout_.row_bytes)
    throw Error(
        ErrorKind::source,
        {.code = "store.unusable",
         .what = "cannot use the store",
         .where = store->path().string(),
         .why = "the arrays of the store do not have " + std::to_string(rows) +
                " rows of " + std::to_string(layout_.row_bytes) + " bytes",
         .next =
             "remove the file: the store is then made again from the source"});
  keys_ = std::make_shared<const TableKeys>(store, key);
  facts_.rows = static_cast<std::int64_t>(rows);
  split(facts_.rows,
        one_side() ? std::span<const std::byte>() : store->checked("sides"));
  if (!options_.drawing) return;
  const std::span<const std::byte> draws = store->checked("draws");
  std::vector<std::uint64_t> values(draws.size() / sizeof(std::uint64_t));
  std::memcpy(values.data(), draws.data(),
              values.size() * sizeof(std::uint64_t));
  facts_.draws = draws_of(options_.drawing, std::move(values));
}

}  // namespace penstock
