#include "penstock/inspect/check_rows.h"

#include <algorithm>
#include <atomic>
#include <set>

#include "penstock/inspect/first_files.h"
#include "penstock/inspect/peek.h"

// A source alone is read block by block: each thread takes partitions, counts
// what the reader itself found wrong, and keeps the first of it. A job's rows
// go through its own scan, which ends with the plan.

namespace penstock {
namespace {

/// What one thread found.
struct Found {
  Surveyor surveyor;
  std::int64_t bad_rows = 0;
  std::vector<BadRow> bad = {};
  std::vector<std::uint64_t> keys = {};  ///< hashes of all
};

/// A column of files, and the field that decodes all of each.
struct FilesColumn {
  std::size_t at;
  std::shared_ptr<const BoundField> field;
};

FilesColumn files_column(const std::string& kind, std::size_t at,
                         const Schema& schema, const Source& source) {
  // Any rate can become 1 Hz, and any part of a sound may be drawn.
  Json fields = Json::parse(
      kind == "audio"
          ? R"({"file": {"audio": {"rate": 1, "seconds": 1, "crop": "random"}}})"
          : R"({"file": {"image": {"size": 1}}})",
      "check");
  fields["file"][kind]["column"] = schema.columns[at].name;
  return {at, parse_fields(fields, "fields")[0].kind->bind(
                  {.info = {schema.columns[at]},
                   .types = {source.types()[at]},
                   .at = {at}})};
}

/// Those of a source of files are its first column; columns of a table are told
/// by their first rows.
std::vector<FilesColumn> files_of(const SourceSpec& spec, const Schema& schema,
                                  const Source& source, StopFlag stop) {
  if (spec.kind == "audio" || spec.kind == "images")
    return {files_column(spec.kind == "audio" ? "audio" : "image", 0, schema,
                         source)};
  std::vector<FilesColumn> files;
  const std::vector<ColumnRequest> requests = surveyed_columns(schema);
  for (std::size_t at = 0; at < requests.size(); ++at)
    if (source.types()[at].kind == ColumnKind::binary)
      if (const auto media = media_in(spec, requests[at], stop))
        files.push_back(files_column(media->kind, at, schema, source));
  return files;
}

/// Decodes the files of one column. One thread's.
struct FilesParser {
  std::size_t at;
  std::unique_ptr<FieldParser> parser;
};

void look(const Schema& schema, const KeyList& keys, const Block& block,
          const std::vector<FilesParser>& files, Found& found) {
  found.surveyor.add(block);
  for (std::int64_t row = 0; row < keys.size(); ++row)
    found.keys.push_back(hash_of_key(keys, row));
  std::set<std::int64_t> rows;
  auto add = [&](std::int64_t row, std::string column, std::string why) {
    if (!rows.insert(row).second) return;
    ++found.bad_rows;
    if (found.bad.size() >= 2 * ParseNotes::kMostBad) return;
    found.bad.push_back({.key = keys.json(row),
                         .shown_key = keys.shown(row),
                         .column = std::move(column),
                         .why = std::move(why)});
  };
  for (const RowProblem& problem : block.problems)
    add(problem.row, schema.columns[problem.column].name, problem.why);
  for (const FilesParser& column : files) {
    Values values;
    Faults faults;
    column.parser->parse(block, values, faults);
    for (RowFault& fault :
         faults.rows)  // NULL, which the source allows, is not bad
      if (block.columns[column.at].valid(fault.row))
        add(fault.row, std::move(fault.place), std::move(fault.why));
  }
}

/// How many keys more than one row has. Hashes are compared in place of keys, 8
/// bytes for each row. Two different keys share a hash with a probability of
/// about n^2 / 2^65: 3e-8 for a million rows.
std::int64_t duplicates(std::vector<std::uint64_t> keys) {
  std::ranges::sort(keys);
  std::int64_t count = 0;
  for (std::size_t i = 1; i < keys.size(); ++i)
    count += keys[i] == keys[i - 1] && (i == 1 || keys[i - 2] != keys[i]);
  return count;
}

std::vector<BadRow> first_of(std::vector<BadRow> bad) {
  std::ranges::stable_sort(bad, shown_before, &BadRow::shown_key);
  if (bad.size() > ParseNotes::kMostBad) bad.resize(ParseNotes::kMostBad);
  return bad;
}

Json bad_json(std::vector<BadRow> bad) {
  Json list(Json::Array{});
  for (BadRow& row : bad) {
    Json one;
    one["row"] = std::move(row.shown_key);
    one["column"] = std::move(row.column);
    one["why"] = std::move(row.why);
    if (row.byte >= 0) one["byte"] = row.byte;
    list.push_back(std::move(one));
  }
  return list;
}

/// Reads all partitions on so many threads.
void read_all(Source& source, const Schema& schema,
              const std::vector<FilesColumn>& files, std::vector<Found>& found,
              StopFlag stop) {
  const std::vector<Partition> parts =
      source.partitions(static_cast<int>(found.size()));
  std::atomic<std::size_t> next{0};
  Mutex mutex;
  std::exception_ptr failed;
  auto read = [&](int worker) {
    Found& own = found[static_cast<std::size_t>(worker)];
    std::unique_ptr<Reader> reader = open_checked_reader(source);
    std::vector<FilesParser> decoding;
    for (const FilesColumn& column : files)
      decoding.push_back({column.at, column.field->checking_parser()});
    for (std::size_t at = 0; (at = next.fetch_add(1)) < parts.size();)
      reader->scan(parts[at], {}, [&](KeyList& keys, Block& block) {
        end_if_stopped(stop);
        look(schema, keys, block, decoding, own);
        return true;
      });
  };
  Stage stage({.name = "check",
               .workers = static_cast<int>(found.size()),
               .body = read,
               .failed = [&](std::exception_ptr error) {
                 next = parts.size();
                 Lock lock(mutex);
                 if (!failed) failed = std::move(error);
               }});
  stage.join();
  if (failed) std::rethrow_exception(failed);
}

}  // namespace

Json check_source(const SourceSpec& spec, int workers, StopFlag stop) {
  const Nanoseconds start = wall_clock().now();
  const Schema schema = surveyed_schema(spec);
  std::unique_ptr<Source> source =
      open_source(spec, surveyed_columns(schema), {.stop = stop});
  if (source->abilities().global_lock) workers = 1;
  std::vector<Found> found(static_cast<std::size_t>(std::max(1, workers)),
                           Found{Surveyor(schema, *source)});
  read_all(*source, schema, files_of(spec, schema, *source, stop), found, stop);
  Found& all = found.front();
  for (std::size_t i = 1; i < found.size(); ++i) {
    all.surveyor.add(found[i].surveyor);
    all.bad_rows += found[i].bad_rows;
    std::ranges::move(found[i].bad, std::back_inserter(all.bad));
    all.keys.insert(all.keys.end(), found[i].keys.begin(), found[i].keys.end());
    found[i].keys = {};
  }
  const Survey& survey = all.surveyor.survey();
  Json json;
  json["source"] = survey.shown;
  json["rows"] = survey.rows;
  json["bad_rows"] = all.bad_rows;
  std::vector<BadRow> first = first_of(std::move(all.bad));
  if (source->abilities().by_position) add_places(*source, first);
  json["bad"] = bad_json(std::move(first));
  if (const std::int64_t twice = duplicates(std::move(all.keys)); twice > 0)
    json["duplicate_keys"] = twice;
  json["columns"] = Json::Array{};
  for (const ColumnSurvey& column : survey.columns)
    json["columns"].push_back(column_json(column, survey.rows));
  if (!schema.left_out.empty()) json["left_out"] = left_out_json(schema);
  json["seconds"] = seconds(wall_clock().now() - start);
  return json;
}

namespace {

/// The rows of one source, with the eyes of a job.
Json check_rows_of(TableDatasetOptions options, StopFlag stop) {
  options.stop = stop;
  options.source.skip_bad = true;
  options.source.fingerprint.clear();
  options.cache = "none";
  options.budgets = {};
  options.plan_only = true;
  options.checks = true;
  std::unique_ptr<Device> device = open_device({.kind = "cpu"});
  std::unique_ptr<Source> source =
      open_source(options.source, requests_of(options), {stop});
  const std::string shown = source->shown();
  auto rows = TableDataset::prepare(options, std::move(source), *device);
  Json json;
  json["source"] = shown;
  const ScanFacts& scan = *rows->facts().scan;
  json["rows"] = rows->rows() + scan.left_out();
  json["bad_rows"] = scan.bad_rows;
  json["bad"] = bad_json(first_of(scan.quarantine));
  json["too_short"] = scan.too_short;
  json["train"] = rows->rows_on(Side::train);
  json["val"] = rows->rows_on(Side::val);
  json["test"] = rows->rows_on(Side::test);
  json["fields"] = Json::Array{};
  for (const Field& field : options.fields)
    json["fields"].push_back(field.name);
  return json;
}

/// Why no batch can be made of so many train rows; null: some can.
Json no_batch(const Job& job, std::int64_t train_rows) {
  DatasetFacts facts;
  facts.on_side[0] = train_rows;
  try {
    steps_per_epoch(train_order(job, facts));
    return {};
  } catch (const Error& error) {
    if (error.parts().code != "sampling.too_few") throw;
    return error.parts().why + "; " + error.parts().next;
  }
}

/// Of each source of several, and their sums.
Json check_mixed(const Job& job, StopFlag stop) {
  Json all;
  all["source"] = std::to_string(job.sources.size()) + " sources";
  for (const char* key :
       {"rows", "bad_rows", "too_short", "train", "val", "test"})
    all[key] = 0;
  all["sources"] = Json::Array{};
  all["bad"] = Json::Array{};
  for (MixedSourceOptions& one : mixed_options(job)) {
    Json json = check_rows_of(std::move(one.rows), stop);
    for (const char* key :
         {"rows", "bad_rows", "too_short", "train", "val", "test"})
      all[key] = all.find(key)->integer() + json.find(key)->integer();
    for (Json bad : json.find("bad")->array()) {
      bad["source"] = std::ssize(all.find("sources")->array());
      all["bad"].push_back(std::move(bad));
    }
    all["sources"].push_back(std::move(json));
  }
  return all;
}

}  // namespace

Json check_job(const Job& job, StopFlag stop) {
  const Nanoseconds start = wall_clock().now();
  Json json = job.sources.empty()
                  ? check_rows_of(dataset_options(job, MemoryKind::cpu), stop)
                  : check_mixed(job, stop);
  if (job.sources.empty())
    json["no_batch"] = no_batch(job, json.find("train")->integer());
  json["seconds"] = seconds(wall_clock().now() - start);
  return json;
}

}  // namespace penstock
