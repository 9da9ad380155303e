#include "penstock/dataset/table/table_store.h"

#include <algorithm>

#include "penstock/base/ascii.h"
#include "penstock/base/cache_folder.h"
#include "penstock/base/sha256_of.h"

namespace penstock {
namespace {

/// Of what stands in the arrays and the document; part of the recipe. A reader
/// of format 1 alone would take rows that are damaged, which the document names
/// in format 2, for rows of zeros. Format 3 lists the files that columns name,
/// and its values follow the CF conventions, the range of INT96 times and the
/// orientation in PNG's raw profile, which older rows do not. In format 4 the
/// unknown class of a category is the last one; it was class 0.
constexpr int kFormat = 4;

/// True where a source says of its rows, or of those of all its parts, when
/// they have changed.
bool knows_version(const Json& identity) {
  if (const Json* parts = identity.find("sources"))
    return std::ranges::all_of(parts->array(), knows_version);
  if (const Json* left = identity.find("left"))
    return knows_version(*left) && knows_version(*identity.find("right"));
  const Json* version = identity.find("version");
  return version != nullptr && !version->is_null();
}

/// True for "name(...)" with one argument or none, which may hold others.
bool calls_with_one(const std::string& text, const std::string& name) {
  for (std::size_t at = 0; (at = text.find(name + "(", at)) != text.npos;
       ++at) {
    const std::size_t begin = at + name.size() + 1;
    const std::size_t end = std::min(text.find(')', begin), text.size());
    if (text.substr(begin, end - begin).find(',') == std::string::npos)
      return true;
  }
  return false;
}

/// A condition or query that selects other rows at another time, by the words
/// of SQLite and PostgreSQL for the clock and for chance. A name that merely
/// holds such a word costs a scan.
bool changes_with_time(const SourceSpec& spec) {
  std::string text;
  for (char c : ascii_lower(spec.where + " " + spec.query))
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r') text += c;
  static const char* const kWords[] = {"now",
                                       "random",
                                       "current_",
                                       "_timestamp",
                                       "localtime",
                                       "timeofday",
                                       "date()",
                                       "time()",
                                       "tablesample",
                                       "julianday()",
                                       "unixepoch()",
                                       "changes()",
                                       "last_insert_rowid"};
  return std::ranges::any_of(
             kWords,
             [&](const char* word) { return text.find(word) != text.npos; }) ||
         calls_with_one(text, "strftime") || calls_with_one(text, "age") ||
         std::ranges::any_of(spec.sources, changes_with_time);
}

}  // namespace

bool says_when_it_changes(const SourceSpec& spec, const Source& source) {
  return (!spec.version.empty() || knows_version(source.identity())) &&
         !changes_with_time(spec);
}

std::filesystem::path default_store_dir() { return cache_folder() / "stores"; }

std::filesystem::path store_dir(const RowsKeeping& options) {
  return options.store_dir.empty() ? default_store_dir()
                                   : std::filesystem::path(options.store_dir);
}

TableStore table_store(const TableDatasetOptions& options, const Source& source,
                       bool statistics) {
  TableStore store;
  Json& recipe = store.recipe;
  recipe["format"] = kFormat;
  recipe["source"] = source.identity();
  if (std::string copy = source.version_of_copy(); !copy.empty())
    recipe["source_copy"] = std::move(copy);
  if (!options.source.version.empty())
    recipe["source_version"] = options.source.version;
  recipe["fields"] = stored_recipes_of(options.fields);
  recipe["split"]["train"] = options.split.train;
  recipe["split"]["val"] = options.split.val;
  if (options.split.test > 0) recipe["split"]["test"] = options.split.test;
  recipe["split"]["seed"] = std::to_string(options.split.seed);
  recipe["split"]["by"] = options.split.by;
  if (options.split.folds > 0)
    recipe["split"]["fold"] = fold_json(options.split);
  if (options.split.limited()) {
    recipe["limit"]["share"] = options.split.share;
    recipe["limit"]["rows"] = options.split.most;
  }
  if (options.drawing)
    recipe["drawn_by"][options.drawing.balance ? "value" : "weight"] =
        options.drawing.column;
  recipe["bad_rows_left_out"] = options.source.skip_bad;
  if (statistics) recipe["statistics"] = *options.statistics;
  if (!options.fitted_with.is_null())
    recipe["fitted_with"] = options.fitted_with;
  recipe["named_fingerprint"] = options.fingerprint;
  store.path =
      store_dir(options) / (sha256_of(recipe.dump()).substr(0, 32) + ".store");
  if (options.source.version.empty() && !knows_version(source.identity()))
    store.why_not = source.shown() +
                    " cannot tell whether its rows have changed since then; "
                    "set 'source.version' to the version of the rows";
  if (options.fitted_with_unknown)
    store.why_not =
        "the fields are fitted over the rows of several sources, and not all "
        "sources can tell whether their rows have changed";
  if (changes_with_time(options.source))
    store.why_not =
        "the condition or query ('source.where', 'source.query') may select "
        "other rows at another time";
  // Its rows are used on request, whatever has become of them.
  if (source.facts().of_store) store.why_not.clear();
  return store;
}

KeyList keys_of(const Store& store, ColumnType type) {
  const std::span<const std::byte> numbers = store.checked("keys"),
                                   characters = store.checked("key_bytes");
  return KeyList::from(
      type,
      {reinterpret_cast<const std::int64_t*>(numbers.data()),
       numbers.size() / sizeof(std::int64_t)},
      {reinterpret_cast<const char*>(characters.data()), characters.size()});
}

std::vector<Json> stored_statistics(const Store& store,
                                    const std::vector<Field>& fields) {
  const Json& stored = *store.about().find("statistics");
  std::vector<Json> all;
  for (const Field& field : fields) {
    const Json* found = stored.find(field.name);
    all.push_back(found == nullptr ? Json() : *found);
  }
  return all;
}

const KeyList& TableKeys::list() const {
  if (store_ == nullptr) return keys_;
  read_.call([this] {
    keys_ = keys_of(*store_, keys_.type());
    charge_.change_to(keys_.memory());
  });
  return keys_;
}

std::size_t TableKeys::bytes() const {
  if (store_ != nullptr)
    return store_->array("keys").size() + store_->array("key_bytes").size();
  return keys_.numbers().size_bytes() + keys_.characters().size();
}

bool uses_stores(const RowsKeeping& options) {
  return options.cache != "none" && options.budgets.disk != 0u;
}

void check_store_dir(const TableDatasetOptions& options) {
  if (options.cache != "disk" && options.budgets.disk.value_or(0) == 0) return;
  const std::filesystem::path dir = store_dir(options);
  if (options.plan_only) return check_can_write(dir);
  real_files().make_folders(dir, Readers::owner);
  real_files().scratch(dir);
}

bool always_writes_store(const TableDatasetOptions& options,
                         const TableStore& store) {
  if (options.plan_only || !store.why_not.empty()) return false;
  const TierBudgets& budgets = options.budgets;
  return options.cache == "disk" ||
         (budgets.disk.value_or(0) > 0 && budgets.device == 0u &&
          budgets.pinned == 0u && budgets.ram == 0u);
}

void check_what_is_read_first(const Store& store, std::size_t fields) {
  for (const char* array : {"sides", "draws"})
    if (store.has(array)) store.checked(array);
  for (std::size_t field = 0; field < fields; ++field)
    if (const std::string lengths = "lengths/" + std::to_string(field);
        store.has(lengths))
      store.checked(lengths);
}

std::string changed_file_of(const Store& store) {
  if (!store.has("files")) return {};
  return changed_file(named_files_of(store.checked("files")));
}

std::filesystem::path lock_of(const TableStore& store) {
  std::filesystem::path lock = store.path;
  lock += ".lock";
  return lock;
}

bool wait_for_turn(FileLock& turn, const TableDatasetOptions& options,
                   const TableStore& store) {
  try {
    real_files().make_folders(store.path.parent_path(), Readers::owner);
  } catch (const Error&) {  // refused when the store is written
  }
  return turn.take(lock_of(store), [&](int times) {
    end_if_stopped(options.stop);
    if (times > 0) return;
    const std::string line =
        "another process is preparing these rows: waiting for " +
        store.path.string();
    log(options.scanning ? LogLevel::info : LogLevel::warning, line);
    if (options.scanning) options.scanning(line);
  });
}

}  // namespace penstock
