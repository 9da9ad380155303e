#include "penstock/dataset/table/part_scan.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/file.h"
#include "penstock/base/folder.h"
#include "penstock/dataset/table/preparation_plan.h"
#include "penstock/dataset/table/scan.h"
#include "penstock/dataset/table/table_origin.h"

// The partitions of a resumable scan are the same for any number of processes;
// a part is a run of them. `scan-parts.json` beside their files says what they
// are of, for messages: the source and the number of parts.

namespace penstock {
namespace {

constexpr const char* kAbout = "scan-parts.json";

using Path = std::filesystem::path;

bool is_there(const Path& path) {
  std::error_code unknown;
  return std::filesystem::exists(path, unknown);
}

/// A scan of one process or of several.
struct SharedScan {
  SharedScan(const TableDatasetOptions& options, const BoundSource& source)
      : origin(named(options, source), source),
        file(origin.stores.empty() ? TableStore() : origin.stores.back()),
        plan(plan_of()),
        parts(real_files(), ScanParts::folder_of(file.path),
              origin.parsing.fields),
        partitions(origin.source->partitions(
            ScanParts::partitions(origin.source->count().rows.value_or(0)))) {}

  /// As why_store() and a preparation name the rows.
  static TableDatasetOptions named(TableDatasetOptions options,
                                   const BoundSource& source) {
    const PreparationPlan plan = plan_preparation(options, source, {});
    if (plan.form != RowsForm::scanned)
      refuse(source.source->shown(),
             "these rows are read without an initial scan, so there is nothing "
             "to share");
    options.fingerprint = plan.fingerprint;
    return options;
  }

  [[noreturn]] static void refuse(std::string where, std::string why) {
    throw Error(ErrorKind::request,
                {.code = "prepare.parts",
                 .what = "cannot prepare these rows in parts",
                 .where = std::move(where),
                 .why = std::move(why),
                 .next = "prepare them in one process: penstock prepare JOB"});
  }

  ScanPlan plan_of() const {
    const std::string shown = origin.source->shown();
    if (origin.stores.empty())
      refuse(shown, "they are not kept in a store on disk");
    if (!file.why_not.empty()) refuse(shown, file.why_not);
    AskedScan asked = asked_scan(origin.options, *origin.source);
    asked.store_usable = true;
    asked.resumable = true;
    const ScanPlan made = decide_scan(asked, read_host_limits());
    if (!made.in_parts)
      refuse(shown,
             "they have keys in place of positions: all rows of one scan come "
             "from one snapshot of the database");
    return made;
  }

  Path file_of(const Partition& partition) const {
    return ScanParts::file_of(ScanParts::folder_of(file.path), partition);
  }
  int part_of(std::size_t partition, int of) const {
    return static_cast<int>(partition * static_cast<std::size_t>(of) /
                            partitions.size()) +
           1;
  }

  const TableOrigin origin;
  const TableStore file;
  const ScanPlan plan;
  const ScanParts parts;
  const std::vector<Partition> partitions;
};

Json about_of(const SharedScan& scan, int of) {
  Json about;
  about["source"] = scan.origin.source->shown();
  about["parts"] = of;
  return about;
}

/// What `scan-parts.json` of a folder of parts says; null: nothing.
Json about_in(const Path& folder) try {
  return Json::parse(real_files().read(folder / kAbout), "scan-parts.json");
} catch (const Error&) {
  return Json();
}

/// Folders of parts of the same source that are for another store.
std::string others_of(const SharedScan& scan) {
  const Path own = ScanParts::folder_of(scan.file.path);
  const Json shown = scan.origin.source->shown();
  std::string others;
  std::error_code none;
  for (const auto& one :
       std::filesystem::directory_iterator(own.parent_path(), none)) {
    if (one.path().extension() != ".parts" || one.path() == own) continue;
    const Json about = about_in(one.path());
    const Json* source = about.is_object() ? about.find("source") : nullptr;
    if (source == nullptr || *source != shown) continue;
    others += (others.empty() ? "" : ", ") + one.path().filename().string();
  }
  return others;
}

/// What is missing, for people: "parts 2, 3 of 4", or rows where it is not
/// known how many parts there are.
std::string missing_text(const SharedScan& scan, int of,
                         std::vector<int>& parts) {
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < scan.partitions.size(); ++i) {
    const Partition& partition = scan.partitions[i];
    if (is_there(scan.file_of(partition))) continue;
    rows += partition.end - partition.first;
    if (of > 0 && (parts.empty() || parts.back() != scan.part_of(i, of)))
      parts.push_back(scan.part_of(i, of));
  }
  if (rows == 0) return {};
  std::string text = std::to_string(rows) + " rows";
  if (parts.empty()) return text;
  std::string list;
  for (const int part : parts)
    list += (list.empty() ? "" : ", ") + std::to_string(part);
  return (parts.size() == 1 ? "part " : "parts ") + list + " of " +
         std::to_string(of) + " (" + text + ")";
}

void check_part(const PartOfScan& which) {
  if (which.of >= 1 && which.part >= 1 && which.part <= which.of) return;
  throw Error(
      ErrorKind::request,
      {.code = "prepare.parts",
       .what = "cannot prepare a part of the rows",
       .where = std::to_string(which.part) + "/" + std::to_string(which.of),
       .why = "parts are numbered from 1 to their number",
       .next = "name one as K/N: 1/4 to 4/4"});
}

/// The source has changed while it was read.
[[noreturn]] void refuse_changed(const SharedScan& scan) {
  throw Error(ErrorKind::source,
              {.code = "prepare.changed",
               .what = "cannot prepare a part of the rows",
               .where = scan.origin.source->shown(),
               .why = "the source changed while the part was read",
               .next = "prepare all parts again when no other program writes "
                       "to the source"});
}

}  // namespace

ScannedRows scan_part(const TableDatasetOptions& options,
                      const BoundSource& source, const PartOfScan& which) {
  check_part(which);
  check_store_dir(options);
  const SharedScan scan(options, source);
  ScannedRows done{.store = scan.file.path,
                   .already = is_there(scan.file.path)};
  if (done.already) return done;

  std::vector<Partition> mine;
  std::vector<Path> made;
  for (std::size_t i = 0; i < scan.partitions.size(); ++i) {
    if (scan.part_of(i, which.of) != which.part) continue;
    const Partition& partition = mine.emplace_back(scan.partitions[i]);
    const std::int64_t rows = partition.end - partition.first;
    done.rows += rows;
    if (is_there(scan.file_of(partition)))
      done.found += rows;
    else
      made.push_back(scan.file_of(partition));
  }
  const Path folder = ScanParts::folder_of(scan.file.path);
  real_files().make_folders(folder, Readers::owner);
  real_files().write(folder / kAbout, about_of(scan, which.of).dump() + "\n",
                     Lasting::later, Readers::owner);
  if (mine.empty()) return done;  // more parts than partitions

  Spill spill(real_files(), store_dir(scan.origin.options),
              scan.origin.source->shown());
  ScanPlan plan = scan.plan;
  plan.limit.expected_rows = done.rows;
  BlockParser::Options parsing = scan.origin.parsing;
  parsing.lends_values = true;  // they are written at once
  scan_table(*scan.origin.source, parsing, scan.origin.options, plan.limit,
             spill, &scan.parts, nullptr, &mine);
  const auto now = open_source(options.source, requests_of(options), {});
  if (now->identity() == scan.origin.source->identity()) return done;
  for (const Path& path : made) {
    std::error_code none;
    std::filesystem::remove(path, none);
  }
  refuse_changed(scan);
}

void check_parts_are_there(const TableDatasetOptions& options,
                           const BoundSource& source) {
  const SharedScan scan(options, source);
  if (is_there(scan.file.path)) return;
  const Path folder = ScanParts::folder_of(scan.file.path);
  const Json about = about_in(folder);
  const Json* of = about.is_object() ? about.find("parts") : nullptr;
  std::vector<int> parts;
  const std::string missing = missing_text(
      scan, of == nullptr ? 0 : static_cast<int>(of->integer()), parts);
  if (missing.empty()) return;
  const std::string others = of == nullptr ? others_of(scan) : "";
  if (!others.empty())
    throw Error(ErrorKind::request,
                {.code = "prepare.other_version",
                 .what = "cannot make the store of these parts",
                 .where = store_dir(options).string(),
                 .why = "the parts that are there (" + others +
                        ") were made of another version of " +
                        scan.origin.source->shown() +
                        ", with other settings, or by another version of "
                        "Penstock",
                 .next = "make all parts again: penstock prepare JOB --part "
                         "K/N"});
  throw Error(ErrorKind::request,
              {.code = "prepare.missing_part",
               .what = "cannot make the store of its parts",
               .where = folder.string(),
               .why = "missing: " + missing,
               .next = parts.empty()
                           ? "make them: penstock prepare JOB --part 1/N, and "
                             "so on to N/N"
                           : "make them: penstock prepare JOB --part " +
                                 std::to_string(parts.front()) + "/" +
                                 std::to_string(of->integer())});
}

}  // namespace penstock
