#include "penstock/dataset/table/stored_table.h"

#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "penstock/dataset/bad_row_json.h"
#include "penstock/dataset/indexed/sample_reader.h"
#include "penstock/dataset/table/table_dataset.h"
#include "penstock/device/device.h"

namespace penstock {
namespace {

[[noreturn]] void refuse_other_rows(const Source& source) {
  throw Error(ErrorKind::source,
              {.code = "files.changed",
               .what = "cannot repair a damaged store",
               .where = source.shown(),
               .why = "the rows of the source are not those that were stored",
               .next = "start again: the rows are prepared again"});
}

std::span<const std::int32_t> lengths_of(const Store& store,
                                         std::size_t field) {
  const std::span<const std::byte> bytes =
      store.checked("lengths/" + std::to_string(field));
  return {reinterpret_cast<const std::int32_t*>(bytes.data()),
          bytes.size() / sizeof(std::int32_t)};
}

/// The part of `from`, whose first byte is number `first` of an array, that
/// fills `out` from byte `begin` of the array on.
void copy_part(std::span<const std::byte> from, std::size_t first,
               std::size_t begin, std::span<std::byte> out,
               const Source& source) {
  if (begin < first || begin - first + out.size() > from.size())
    refuse_other_rows(source);
  std::memcpy(out.data(), from.data() + (begin - first), out.size());
}

/// What the store of a table's rows was made from: makes its bytes again where
/// they are damaged, while a run continues.
///
/// Rows and their runs are read from the source by key or position and encoded
/// with the stored statistics; anything else (keys, sides, lengths) needs the
/// whole store, which is made as the first run made it. One thread's at a time.
class StoreRemaker {
 public:
  explicit StoreRemaker(std::shared_ptr<const TableOrigin> origin)
      : origin_(std::move(origin)) {}

  /// Store::Remake. Throws Error(source), files.changed, for rows that are not
  /// what they were, and what the source throws.
  void remake(const Store& store, const std::string& array, std::size_t begin,
              std::span<std::byte> out) const;

  /// Writes the whole store again and renames it over the old one, unless
  /// another process has just done so. Throws what preparing the rows throws.
  void rebuild(bool with_statistics) const;

 private:
  /// Stored rows, and of each field its runs.
  struct Rows {
    std::vector<std::byte> rows;
    std::vector<Values> runs;
  };
  Rows encoded(const Store& store, std::int64_t first, std::int64_t end) const;
  void copy_rows(const Store& store, std::size_t begin,
                 std::span<std::byte> out) const;
  void copy_runs(const Store& store, std::size_t field, std::size_t begin,
                 std::span<std::byte> out) const;

  const std::shared_ptr<const TableOrigin> origin_;
};

StoreRemaker::Rows StoreRemaker::encoded(const Store& store, std::int64_t first,
                                         std::int64_t end) const {
  const ColumnType key = origin_->key_type;
  const KeyList all = keys_of(store, key);
  std::vector<SampleId> ids(static_cast<std::size_t>(end - first));
  std::iota(ids.begin(), ids.end(), first);
  KeyList keys(key);
  for (SampleId id : ids) keys.append(all, id);
  Block block;
  SampleReader(*origin_->source, &all, nullptr).read(ids, block);
  ParseNotes notes;
  const ParsedBlock parsed =
      BlockParser(origin_->parsing).parse(keys, block, notes);
  if (parsed.rows() != end - first) refuse_other_rows(*origin_->source);
  const std::vector<Field>& fields = origin_->options.fields;
  RowEncoder encoder = origin_->encoder(stored_statistics(store, fields));
  Rows made{
      .rows = std::vector<std::byte>(ids.size() * origin_->layout.row_bytes),
      .runs = std::vector<Values>(fields.size())};
  Faults damaged;
  encoder.encode(parsed, made.rows.data(), made.runs, &damaged);
  return made;
}

void StoreRemaker::copy_rows(const Store& store, std::size_t begin,
                             std::span<std::byte> out) const {
  const std::size_t bytes = origin_->layout.row_bytes;
  const std::size_t first = begin / bytes;
  const std::size_t end = (begin + out.size() + bytes - 1) / bytes;
  const Rows made = encoded(store, static_cast<std::int64_t>(first),
                            static_cast<std::int64_t>(end));
  copy_part(made.rows, first * bytes, begin, out, *origin_->source);
}

void StoreRemaker::copy_runs(const Store& store, std::size_t field,
                             std::size_t begin,
                             std::span<std::byte> out) const {
  const std::size_t element = origin_->element_bytes[field];
  const std::span<const std::int32_t> lengths = lengths_of(store, field);
  std::size_t first = 0, first_byte = 0;
  auto bytes_of = [&](std::size_t row) {
    return static_cast<std::size_t>(lengths[row]) * element;
  };
  while (first < lengths.size() && first_byte + bytes_of(first) <= begin)
    first_byte += bytes_of(first++);
  std::size_t end = first;
  for (std::size_t at = first_byte;
       end < lengths.size() && at < begin + out.size(); ++end)
    at += bytes_of(end);
  const Rows made = encoded(store, static_cast<std::int64_t>(first),
                            static_cast<std::int64_t>(end));
  copy_part(made.runs[field].bytes.span(), first_byte, begin, out,
            *origin_->source);
}

void StoreRemaker::remake(const Store& store, const std::string& array,
                          std::size_t begin, std::span<std::byte> out) const {
  constexpr std::string_view kRuns = "runs/";
  if (array == "rows") return copy_rows(store, begin, out);
  if (array.starts_with(kRuns))
    return copy_runs(store, std::stoul(array.substr(kRuns.size())), begin, out);
  rebuild(store.about().find("recipe")->find("statistics") != nullptr);
  const Store whole(real_files(), store.path());
  copy_part(whole.checked(array), 0, begin, out, *origin_->source);
}

void StoreRemaker::rebuild(bool with_statistics) const {
  TableDatasetOptions again = origin_->options;
  if (!with_statistics) again.statistics.reset();
  again.cache = "disk";
  again.budgets = {};
  again.remake = true;
  again.resumable = again.plan_only = false;
  again.open = nullptr;
  static_cast<RowsUse&>(again) = {};
  static_cast<PreparationListener&>(again) = {};
  const std::unique_ptr<Device> host = open_device({.kind = "cpu"});
  TableDataset::prepare(again, BoundSource{origin_->source, origin_->bound},
                        *host);
}

void check_sizes(const Store& store, const TableOrigin& origin,
                 std::size_t rows) {
  const std::size_t row_bytes = origin.layout.row_bytes;
  const std::size_t keys = origin.key_type == ColumnType::uuid
                               ? store.array("key_bytes").size() / 16
                               : store.array("keys").size() / 8;
  if (keys == rows && store.array("sides").size() == rows &&
      store.array("rows").size() == rows * row_bytes)
    return;
  throw Error(
      ErrorKind::source,
      {.code = "store.unusable",
       .what = "cannot use the store",
       .where = store.path().string(),
       .why = "the arrays of the store do not have " + std::to_string(rows) +
              " rows of " + std::to_string(row_bytes) + " bytes",
       .next =
           "remove the file: the store is then made again from the source"});
}

FoundRows found_in(const std::shared_ptr<const Store>& store,
                   const TableOrigin& origin) {
  const TableDatasetOptions& options = origin.options;
  const Json& about = store->about();
  FoundRows found{.fingerprint = about.find("fingerprint")->string(),
                  .scan = {.too_short = about.find("too_short")->integer(),
                           .bad_rows = about.find("bad_rows")->integer()},
                  .statistics = stored_statistics(*store, options.fields)};
  for (const Json& bad : about.find("quarantine")->array())
    found.scan.quarantine.push_back(bad_row_of(bad));
  const std::int64_t rows = about.find("rows")->integer();
  check_sizes(*store, origin, static_cast<std::size_t>(rows));
  found.keys = std::make_shared<const TableKeys>(store, origin.key_type);
  found.sides = index_sides(options.split, rows,
                            options.split.whole() ? std::span<const std::byte>()
                                                  : store->checked("sides"));
  if (!options.drawing) return found;
  const std::span<const std::byte> draws = store->checked("draws");
  std::vector<std::uint64_t> values(draws.size() / sizeof(std::uint64_t));
  std::memcpy(values.data(), draws.data(),
              values.size() * sizeof(std::uint64_t));
  found.draws = draws_of(options.drawing, std::move(values));
  return found;
}

/// Of a store that is damaged where it says what it holds, so that nothing of
/// it can be used. False: it stays unchanged.
bool rebuild(const StoreRemaker& remaker, const TableOrigin& origin,
             const TableStore& file, const Error& error) {
  if (error.kind() != ErrorKind::source || origin.options.plan_only ||
      origin.source->facts().of_store)
    return false;
  log(LogLevel::warning,
      "the store is damaged and is made again from the source: " +
          std::string(error.what()));
  FileLock turn;
  try {
    wait_for_turn(turn, origin.options, file);
    remaker.rebuild(file.recipe.find("statistics") != nullptr);
  } catch (const Error& failed) {
    if (is_stop(failed)) throw;
    log(LogLevel::warning,
        "the store could not be made again: " + std::string(failed.what()));
    return false;
  }
  return true;
}

/// Missing: it is of other rows.
std::optional<StoredTable> rows_of_store(
    const std::shared_ptr<const TableOrigin>& origin,
    const std::shared_ptr<const StoreRemaker>& remaker,
    const std::filesystem::path& path) {
  auto store = std::make_shared<Store>(real_files(), path);
  store->repair_with([remaker](const Store& damaged, const std::string& array,
                               std::size_t begin, std::span<std::byte> out) {
    remaker->remake(damaged, array, begin, out);
  });
  const std::optional<Json>& statistics = origin->options.statistics;
  if (statistics && *store->about().find("statistics") != *statistics)
    return std::nullopt;
  check_what_is_read_first(*store, origin->options.fields.size());
  if (const std::string changed = changed_file_of(*store); !changed.empty()) {
    log(LogLevel::warning, "rows of an earlier run are not used: '" + changed +
                               "' has changed since");
    return std::nullopt;
  }
  StoredTable stored{.found = found_in(store, *origin),
                     .placed = rows_in(store, *origin)};
  stored.placed.damaged = damaged_rows_of(*store->about().find("damaged"));
  // When it was last used, for who wants to remove those that are not.
  std::error_code unknown;
  std::filesystem::last_write_time(
      path, std::filesystem::file_time_type::clock::now(), unknown);
  return stored;
}

}  // namespace

std::optional<StoredTable> open_stored(
    const std::shared_ptr<const TableOrigin>& origin, const TableStore& file) {
  std::error_code unknown;
  if (!std::filesystem::exists(file.path, unknown)) return std::nullopt;
  if (!file.why_not.empty()) {
    log(LogLevel::info, "rows of an earlier run are not used: " + file.why_not);
    return std::nullopt;
  }
  const auto remaker = std::make_shared<const StoreRemaker>(origin);
  for (bool rebuilt : {false, true}) try {
      return rows_of_store(origin, remaker, file.path);
    } catch (const Error& error) {
      if (!rebuilt && rebuild(*remaker, *origin, file, error)) continue;
      scan_instead(error);
      break;
    }
  return std::nullopt;
}

void scan_instead(const Error& error) {
  if (error.kind() != ErrorKind::source) throw;
  log(LogLevel::warning,
      std::string("the rows are scanned again: ") + error.what());
}

}  // namespace penstock
