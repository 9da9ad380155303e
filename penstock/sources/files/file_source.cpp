#include "penstock/sources/files/file_source.h"

#include <algorithm>
#include <any>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/hash.h"
#include "penstock/base/name_index.h"
#include "penstock/sources/blocks.h"
#include "penstock/sources/files/file_reader.h"
#include "penstock/sources/files/file_settings.h"
#include "penstock/sources/files/windows.h"
#include "penstock/sources/schema.h"
#include "penstock/sources/this_copy.h"

namespace penstock::files {
namespace {

/// A guess, for those who decide whether rows are read one by one.
constexpr double kNsPerValue = 3;

/// Counts the rows that the condition keeps, chunk by chunk. Chunks whose
/// bounds exclude the condition are not read (as the row groups of Parquet).
/// Bounds are those of the stored values, so they say nothing of a column that
/// source.columns converts.
std::vector<std::int64_t> count_selected(const OpenedFiles& opened,
                                         std::size_t requests) {
  const FileSet& set = *opened.set;
  std::vector<std::size_t> columns(
      opened.columns.begin() + static_cast<std::ptrdiff_t>(requests),
      opened.columns.end());
  // A condition over nothing still needs to know how many rows there are.
  if (columns.empty()) columns.push_back(0);
  SetReader reader(opened.set, columns);
  std::vector<std::int64_t> counts, rows;
  for (auto [file, chunk] : opened.places) {
    std::vector<ChunkBounds> bounds;
    for (std::size_t column : opened.where->columns()) {
      std::int64_t place = set.places[file][column];
      bounds.push_back(place < 0 || set.columns[column].chosen
                           ? ChunkBounds{}
                           : set.files[file]->bounds(
                                 chunk, static_cast<std::size_t>(place)));
    }
    counts.push_back(0);
    if (!opened.where->may_select(bounds)) continue;
    reader.read(file, chunk, [&](Block&& piece) {
      end_if_stopped(opened.stop);
      select_rows(*opened.where, piece, 0, rows);
      counts.back() += std::ssize(rows);
      return true;
    });
  }
  return counts;
}

bool wants_numbers(const ColumnRequest& request) {
  return request.as == ReadAs::number || request.as == ReadAs::integer;
}

/// Lets files whose rows depend on what is read of them count them.
void find_rows(FileSet& set, const std::vector<std::size_t>& columns,
               const std::vector<ColumnRequest>& requests) {
  const bool condition = columns.size() > requests.size();  // knows the types
  for (std::size_t f = 0; f < set.files.size(); ++f) {
    std::vector<ReadColumn> read;
    for (std::size_t at = 0; at < columns.size(); ++at) {
      const std::int64_t place = set.places[f][columns[at]];
      if (place < 0) continue;
      read.push_back({.column = static_cast<std::size_t>(place)});
      if (at >= requests.size()) continue;  // of the condition
      read.back().window = requests[at].window;
      read.back().stride = requests[at].stride;
      read.back().as_number = !condition && wants_numbers(requests[at]);
      read.back().as_document = requests[at].document;
    }
    const auto counted = set.files[f]->for_columns(read);
    if (counted != nullptr) set.files[f] = counted;
    // A window of numbers is a tensor, and a column of numbers may be one.
    for (std::size_t at = 0; at < requests.size(); ++at)
      if (const std::int64_t place = set.places[f][columns[at]];
          place >= 0 &&
          (requests[at].window > 0 ||
           (counted != nullptr && !condition && wants_numbers(requests[at]) &&
            !set.columns[columns[at]].chosen)))
        set.columns[columns[at]].column =
            set.files[f]->facts().columns[static_cast<std::size_t>(place)];
  }
}

/// Of the longest of the files, as they lie there.
std::int64_t longest_of(const FileSet& set) {
  std::int64_t longest = 0;
  for (const auto& file : set.files) longest = std::max(longest, file->rows());
  return longest;
}

void find_chunks(OpenedFiles& opened, std::size_t requests) {
  const FileSet& set = *opened.set;
  std::vector<std::int64_t> counts;
  for (std::size_t f = 0; f < set.files.size(); ++f) {
    std::int64_t first = 0;
    const std::vector<std::int64_t>& ends = set.files[f]->facts().chunk_ends;
    for (std::int64_t chunk = 0; chunk < std::ssize(ends); ++chunk) {
      opened.places.emplace_back(f, chunk);
      counts.push_back(ends[static_cast<std::size_t>(chunk)] - first);
      first = ends[static_cast<std::size_t>(chunk)];
    }
  }
  if (opened.where) counts = count_selected(opened, requests);
  // `ends` are sums of what the condition keeps: a chunk of which no row is
  // kept ends where it begins, and the search by position never finds it.
  std::int64_t end = 0, largest = 0;
  for (std::int64_t count : counts) {
    opened.chunks.ends.push_back(end += count);
    largest = std::max(largest, count);
  }
  ReaderMemory& reader = opened.chunks.reader;
  for (std::size_t f = 0; f < set.files.size(); ++f) {
    const RowFile& file = *set.files[f];
    opened.chunks.decoded_bytes += file.facts().decoded_bytes;
    opened.chunks.kept_bytes =
        std::max(opened.chunks.kept_bytes, file.facts().kept_bytes);
    const ReaderMemory of =
        file.reader_memory(set.own_columns(f, opened.columns));
    reader.scanning = std::max(reader.scanning, of.scanning);
    reader.by_position = std::max(reader.by_position, of.by_position);
  }
  opened.chunks.chunk_ns =
      kNsPerValue * static_cast<double>(largest) *
      static_cast<double>(std::max<std::size_t>(1, requests));
}

/// Which files, and which version of them: no row is read for it.
Json identity_of(const OpenedFiles& opened,
                 const std::vector<ColumnRequest>& requests) {
  Json identity(Json::Object{});
  identity["kind"] = opened.spec.kind;
  identity["place"] = place_of(opened.spec);
  Json columns(Json::Array{});
  for (const ColumnRequest& request : requests)
    columns.push_back(request.column);
  identity["columns"] = std::move(columns);
  for (std::size_t at = 0; at < opened.served.size(); ++at)
    identity["types"].push_back(name_of(opened.served[at].type));
  for (const ColumnRequest& request : requests)
    if (request.window > 0)
      identity["windows"][request.column] =
          Json(Json::Array{request.window, request.stride});
  for (std::size_t at = 0; at < requests.size(); ++at) {
    const FileColumn& column = opened.set->columns[opened.columns[at]].column;
    if (column.values.empty()) continue;
    Sha256 classes;
    for (const std::string& value : column.values)
      classes.add(std::to_string(value.size()) + ":" + value);
    identity["classes"][requests[at].column] = classes.hex();
  }
  identity["where"] = opened.spec.where;
  const FileSet& set = *opened.set;
  Sha256 files;
  FileStamps stamps;
  std::int64_t bytes = 0;
  for (std::size_t f = 0; f < set.data.size(); ++f) {
    const DataFile& file = set.data[f];
    bytes += file.bytes;
    files.add(file.relative + "\n" + std::to_string(file.bytes) + " " +
              std::to_string(file.changed_ns) + " " +
              std::to_string(set.files[f]->rows()) + "\n");
    if (file.stamps.empty())
      stamps.add(file.stamp);
    else
      stamps.add_all(file.stamps);
    for (const DataFile& other : opened.others[f]) stamps.add(other.stamp);
  }
  const FileSettings& settings = file_settings_of(opened.spec);
  if (!settings.row_labels.empty()) {
    const DataFile labels = file_at(settings.row_labels, settings.row_labels);
    identity["labels"] =
        std::to_string(labels.bytes) + " " + std::to_string(labels.changed_ns);
    stamps.add(labels.stamp);
  }
  identity["files"] = std::ssize(set.data);
  identity["bytes"] = bytes;
  // "version" is the same for a copy with the same names, sizes and times, with
  // which a saved position may continue. The stamps, which have inodes, are of
  // this copy alone: a store of prepared rows is made again for another one.
  identity["version"] = files.hex();
  identity[kThisCopy] = stamps.hex();
  Json::Object chosen;
  for (const auto& [name, type] : settings.columns)
    chosen.emplace_back(name, type);
  if (!chosen.empty()) identity["chosen"] = std::move(chosen);
  return identity;
}

std::shared_ptr<const RowParts> parts_of(const OpenedFiles& opened) {
  const std::vector<DataFile>& data = opened.set->data;
  if (data.empty()) return nullptr;
  std::vector<std::int64_t> ends(data.size());
  for (std::size_t chunk = 0; chunk < opened.places.size(); ++chunk)
    ends[opened.places[chunk].first] = opened.chunks.ends[chunk];
  auto parts = std::make_shared<RowParts>();
  std::int64_t end = 0;  // a file may have no chunk
  for (std::size_t at = 0; at < data.size(); ++at)
    parts->add(data[at].relative, end = std::max(end, ends[at]));
  return parts;
}

SourceFacts facts_of(const OpenedFiles& opened,
                     const std::vector<ColumnRequest>& requests,
                     bool in_memory) {
  return {.shown = place_of(opened.spec),
          .schema = opened.set->schema(),
          .types = types_of(opened.served),
          .abilities = {.by_position = true,
                        .sorted = true,
                        .in_memory = in_memory},
          .parts = parts_of(opened),
          .identity = identity_of(opened, requests)};
}

class FileSource final : public Source {
 public:
  FileSource(std::shared_ptr<const OpenedFiles> opened,
             const std::vector<ColumnRequest>& requests, bool in_memory)
      : Source(facts_of(*opened, requests, in_memory)),
        opened_(std::move(opened)) {
    if (opened_->rows() > 0) facts_.chunks = {opened_, &opened_->chunks};
  }

  RowCount count() const override {
    return {.rows = opened_->rows(), .exact = true};
  }
  std::unique_ptr<Reader> open_reader() override {
    return make_file_reader(opened_);
  }
  std::string place_of(std::int64_t position) const override {
    if (opened_->where || position < 0 || position >= opened_->rows())
      return {};
    const std::int64_t at = opened_->chunks.chunk_of(position);
    const auto [f, chunk] = opened_->places[static_cast<std::size_t>(at)];
    const RowFile& file = *opened_->set->files[f];
    const std::int64_t end = opened_->chunks.ends[static_cast<std::size_t>(at)];
    return file.place_of(file.chunk_end(chunk) - (end - position));
  }

 private:
  const std::shared_ptr<const OpenedFiles> opened_;
};

/// The types of the columns that would be texts because of a few of their
/// values, where a field asks for numbers: only those values are bad then.
/// Empty: there are no such columns.
std::vector<std::pair<std::string, std::string>> types_of_most(
    const Schema& schema, const std::vector<ColumnRequest>& requests) {
  std::vector<std::pair<std::string, std::string>> types;
  for (const Doubt& doubt : schema.doubts) {
    auto asks = [&](const ColumnRequest& request) {
      return request.column == doubt.column && wants_numbers(request);
    };
    if (!doubt.type.empty() && std::ranges::any_of(requests, asks))
      types.emplace_back(doubt.column, doubt.type);
  }
  return types;
}

}  // namespace

std::unique_ptr<Source> open_file_source(
    const SourceSpec& spec, const std::vector<ColumnRequest>& requests,
    SourceOptions options, const FileKind& kind) {
  auto opened = std::make_shared<OpenedFiles>();
  opened->spec = spec;
  opened->stop = options.stop;
  FileSet set = open_set(spec, kind, options.stop);
  Schema schema = set.schema();
  if (const auto types = types_of_most(schema, requests); !types.empty()) {
    SourceSpec chosen = spec;
    auto& columns = std::any_cast<FileSettings&>(chosen.own).columns;
    columns.insert(columns.end(), types.begin(), types.end());
    return open_file_source(chosen, requests, options, kind);
  }
  if (schema.find(kPathColumn) == nullptr &&
      std::ranges::find(requests, kPathColumn, &ColumnRequest::column) !=
          requests.end()) {
    add_path(set);
    schema = set.schema();
  }
  const NameIndex names(schema.columns, &ColumnInfo::name);
  for (const ColumnRequest& request : requests) {
    const std::optional<std::size_t> found = names.find(request.column);
    if (!found)
      column_of(schema, request.column, request.setting, place_of(spec));
    opened->columns.push_back(found.value());
  }
  if (!spec.where.empty()) {
    opened->where.emplace(spec.where, set.seen());
    for (std::size_t column : opened->where->columns())
      opened->columns.push_back(column);
  }
  const std::int64_t longest = longest_of(set);
  find_rows(set, opened->columns, requests);
  for (const ColumnRequest& request : requests)
    if (request.window > 0 && longest > 0 && longest_of(set) == 0)
      refuse_windows(place_of(spec), request.column, request.window, longest);
  const std::vector<FileColumn> seen = set.seen();
  for (std::size_t at = 0; at < requests.size(); ++at)
    opened->served.push_back(served(seen[opened->columns[at]], requests[at]));
  for (const auto& file : set.files)
    opened->others.push_back(file->facts().other_files);
  opened->set = std::make_shared<const FileSet>(std::move(set));
  find_chunks(*opened, requests.size());
  return std::make_unique<FileSource>(std::move(opened), requests,
                                      kind.in_memory);
}

Schema read_file_schema(const SourceSpec& spec, const FileKind& kind) {
  return open_set(spec, kind, nullptr).schema();
}

std::unique_ptr<TableWriter> refuse_writing(const SourceSpec& spec,
                                            const std::vector<NewColumn>&,
                                            bool) {
  throw Error(ErrorKind::request,
              {.code = "source.read_only",
               .what = "cannot write a table to '" + spec.path + "'",
               .where = "the target",
               .why = "sources of kind \"" + spec.kind + "\" are read only",
               .next = "write to sqlite:FILE#table or a PostgreSQL server"});
}

}  // namespace penstock::files
