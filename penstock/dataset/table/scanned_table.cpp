#include "penstock/dataset/table/scanned_table.h"

#include <algorithm>
#include <utility>

#include "penstock/dataset/indexed/no_rows.h"
#include "penstock/dataset/row_place.h"
#include "penstock/dataset/table/key_order.h"

namespace penstock {
namespace {

/// `by_position`: such rows that have names are files, without columns to
/// compare.
[[noreturn]] void refuse_bad_rows(const ScanFacts& scan,
                                  const std::string& source, bool by_position) {
  const std::vector<BadRow>& bad = scan.quarantine;
  std::string first;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, bad.size()); ++i) {
    const BadRow& row = bad[i];
    first += (i == 0 ? "" : "; ") + std::string("row ") + row.shown_key +
             ", column '" + row.column + "'";
    if (row.byte >= 0) first += ", byte " + std::to_string(row.byte);
    first += ": " + row.why;
  }
  throw Error(
      ErrorKind::transform,
      {.code = "data.bad_rows",
       .what = std::to_string(scan.bad_rows) +
               (scan.bad_rows == 1 ? " row is" : " rows are") + " not usable",
       .where = source,
       .why = first,
       .next = std::string("correct the rows, ") +
               (bad.front().key.is_string() && by_position
                    ? ""
                    : "leave them out with 'source.where', ") +
               "or set \"source.on_bad\": \"skip\" to leave out and list all "
               "such rows"});
}

/// Those of all fields, each once.
std::vector<NamedFile> named_files_in(const ParseNotes& notes) {
  std::vector<NamedFile> all;
  for (const std::unique_ptr<FieldNotes>& field : notes.fields) {
    if (field == nullptr) continue;
    const std::span<const NamedFile> files = field->files();
    all.insert(all.end(), files.begin(), files.end());
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

/// Nothing but keys, sides and hashes is needed of the scan.
bool needs_no_values(const TableDatasetOptions& options) {
  return options.cache == "none" && options.statistics &&
         std::ranges::all_of(options.fields, [](const Field& field) {
           return field.kind->facts().stored.element_bytes == 0;
         });
}

AskedScan asked_of(const TableOrigin& origin, const TableStore& file) {
  AskedScan asked = asked_scan(origin.options, *origin.source);
  asked.keeps_values = !needs_no_values(origin.options);
  asked.store_usable = file.why_not.empty() && !file.path.empty();
  asked.runs_to_disk = origin.options.cache == "disk" && origin.runs_alone &&
                       origin.bound[0]->unfitted();
  return asked;
}

void announce(const TableOrigin& origin, const ScanLimit& limit,
              const Spill& spill) {
  const std::string text =
      "the initial scan may use " + limit.text() + "; " + spill.text();
  log(LogLevel::info, text);
  const TableDatasetOptions& options = origin.options;
  if (!options.scanning) return;
  if (limit.expected_rows) {
    const auto rows = static_cast<std::size_t>(*limit.expected_rows);
    const std::size_t bytes = origin.layout.row_bytes;
    const bool more = std::ranges::any_of(options.fields, [](const Field& of) {
      return of.kind->facts().stored.element_bytes > 0;
    });
    options.scanning("~" + std::to_string(rows) + " rows of " +
                     std::to_string(bytes) + " bytes, ~" +
                     shown_bytes(rows * bytes) +
                     (more ? ", without the fields of varying length" : ""));
  }
  options.scanning(text);
}

/// The runs of rows in the order of the source, whatever is found of them.
std::unique_ptr<StoreOfScan> begun_store(const TableOrigin& origin,
                                         const TableStore& file) {
  return std::make_unique<StoreOfScan>(
      real_files(), file.path, origin.encoder({*origin.bound[0]->unfitted()}),
      origin.element_bytes[0]);
}

}  // namespace

ScannedTable::ScannedTable(const TableOrigin& origin, const TableStore& file,
                           StageMeter& meter)
    : spill(real_files(), store_dir(origin.options), origin.source->shown()),
      rows{pass.blocks, {}} {
  const TableDatasetOptions& options = origin.options;
  const std::string shown = origin.source->shown();
  const AskedScan asked = asked_of(origin, file);
  const ScanPlan plan = decide_scan(asked, read_host_limits());
  announce(origin, plan.limit, spill);
  BlockParser::Options parsing = origin.parsing;
  parsing.keeps_values = asked.keeps_values;
  if (plan.in_parts)
    parts.emplace(real_files(), ScanParts::folder_of(file.path),
                  parsing.fields);
  parsing.lends_values = parts.has_value();  // they are written at once
  if (plan.into_store) begun = begun_store(origin, file);
  pass = scan_table(*origin.source, parsing, options, plan.limit, spill,
                    parts ? &*parts : nullptr, begun.get());
  found.scan = {.too_short = pass.notes.too_short,
                .bad_rows = pass.notes.bad_rows,
                .quarantine = std::move(pass.notes.bad)};
  add_places(*origin.source, found.scan.quarantine);
  named_files = named_files_in(pass.notes);
  const bool by_key = origin.source->abilities().by_key;
  if (found.scan.bad_rows > 0 && !options.source.skip_bad)
    refuse_bad_rows(found.scan, shown, origin.source->abilities().by_position);
  BusyScope busy(meter);
  rows.refs = rows_by_key(pass.blocks, shown, options.workers);
  refuse_left_out_twice(pass.notes.left_out, pass.blocks, shown);
  // Rows by position keep their ids, which are their positions.
  keep_most(options.split, !by_key, rows);
  if (rows.refs.empty())
    refuse_no_rows(shown, found.scan.too_short, found.scan.bad_rows);
  if (options.drawing) found.draws = draws_of(options.drawing, draws_in(rows));
  found.sides = index_sides(
      options.split, rows.count(),
      options.split.whole() ? std::vector<std::byte>() : sides_of(rows));
}

ScannedTable::~ScannedTable() = default;

}  // namespace penstock
