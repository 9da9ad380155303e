#include <algorithm>
#include <filesystem>
#include <memory>

#include "penstock/base/folder.h"
#include "penstock/base/printable.h"
#include "penstock/base/shown.h"
#include "penstock/base/table_text.h"
#include "penstock/cli/output.h"
#include "penstock/cli/verb.h"
#include "penstock/inspect/inspect.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

struct DatasetsArguments {
  std::vector<std::string> paths;
  bool no_measure = false;
};

/// True for a file that looks like a job, of those that nobody has named.
bool is_job(const fs::path& file) {
  try {
    const Json document = read_job(file.string(), {});
    return document.is_object() && (document.find("source") != nullptr ||
                                    document.find("sources") != nullptr);
  } catch (const Error&) {
    return false;
  }
}

DatasetSearch search_of(const DatasetsArguments& arguments) {
  DatasetSearch search;
  search.measure = !arguments.no_measure;
  for (const std::string& path : arguments.paths) {
    std::error_code unknown;
    if (fs::is_regular_file(path, unknown))
      search.jobs.emplace_back(path);
    else
      search.more.emplace_back(path);
  }
  if (!search.jobs.empty()) return search;
  std::error_code unreadable;
  for (const FolderEntry& entry : entries_of(".", unreadable))
    if (entry.path.extension() == ".json" && is_job(entry.path))
      search.jobs.push_back(entry.path.lexically_normal());
  std::ranges::sort(search.jobs);
  return search;
}

std::string names_in(const Json& texts) {
  return listed(texts.array(), [](const Json& text) { return text.string(); });
}

std::vector<std::string> row_of(const Json& set) {
  const Json* why = set.find("why");
  const Json& rows = *set.find("rows");
  const Json& config = *set.find("config");
  return {printable(set.find("name")->string()),
          config.is_null() ? "" : printable(config.string()),
          printable(names_in(*set.find("splits"))),
          rows.is_null() ? "?" : rows.dump(),
          shown_bytes(static_cast<std::size_t>(set.find("bytes")->integer())),
          names_in(*set.find("formats")),
          set.find("origin")->string(),
          printable(set.find("drive")->string()),
          printable(names_in(*set.find("jobs"))),
          why == nullptr ? "" : "INCOMPLETE: " + printable(why->string())};
}

void print_sets(const Json& json) {
  std::vector<std::vector<std::string>> rows = {
      {"name", "config", "splits", "rows", "size", "format", "where", "drive",
       "used by", ""}};
  for (const Json& set : json.find("datasets")->array())
    rows.push_back(row_of(set));
  if (rows.size() > 1) print(table_text(rows));
  for (const Json& drive : json.find("drives")->array()) {
    const Json& rate = *drive.find("bytes_per_s");
    print("drive " + printable(drive.find("mount")->string()) + " (" +
          drive.find("device")->string() + ", " + drive.find("type")->string() +
          "): " +
          (rate.is_null()
               ? std::string("read rate was not measured")
               : "read at " +
                     shown_bytes(static_cast<std::size_t>(rate.number())) +
                     "/s") +
          "\n");
  }
  print("data sets: " + std::to_string(json.find("datasets")->array().size()) +
        ", " +
        shown_bytes(static_cast<std::size_t>(json.find("bytes")->integer())) +
        "\n");
}

}  // namespace

Verb datasets_verb() {
  return {.name = "datasets",
          .help = "Find the Hugging Face data sets on this machine",
          .example = "penstock datasets ~/data job.json --json",
          .add = [](Options& options, Invocation& invocation) -> RunVerb {
            auto arguments = std::make_shared<DatasetsArguments>();
            options.add("path", arguments->paths,
                        "Further folders to search, and job files that may use "
                        "the data sets. Default: the job files in this folder");
            options.flag("--no-measure", arguments->no_measure,
                         "Do not measure how fast the drives are read");
            add_json(options, invocation, "One JSON document");
            return [arguments](Invocation& invoked) {
              const Json json = find_datasets(search_of(*arguments));
              if (invoked.json) return print_document(json);
              print_sets(json);
            };
          }};
}

}  // namespace penstock
