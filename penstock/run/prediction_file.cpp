#include "penstock/run/prediction_file.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "penstock/run/text_table.h"
#include "penstock/session/session.h"

namespace penstock {
namespace {

/// How predictions are written to files whose names end like this.
struct Ending {
  const char* ending;
  const char* kind;  ///< of the source that reads it
  TextFormat format = TextFormat::csv;
};
constexpr Ending kEndings[] = {{".csv", "csv", TextFormat::csv},
                               {".tsv", "csv", TextFormat::tsv},
                               {".jsonl", "jsonl", TextFormat::jsonl},
                               {".ndjson", "jsonl", TextFormat::jsonl},
                               {".parquet", "parquet"},
                               {".pq", "parquet"},
                               {".arrow", "arrow"},
                               {".feather", "arrow"},
                               {".ipc", "arrow"}};

[[noreturn]] void refuse_file(const char* code, const std::string& path,
                              std::string why, std::string next) {
  throw Error(ErrorKind::request, {.code = code,
                                   .what = "cannot write predictions",
                                   .where = path,
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

const Ending& ending_of(const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension().string();
  const auto* found = std::ranges::find_if(
      kEndings, [&](const Ending& one) { return ending == one.ending; });
  if (found != std::end(kEndings)) return *found;
  refuse_file("predict.out_format", path,
              ending.empty() ? "its name has no ending that says its format"
                             : "no predictions are written as '" + ending + "'",
              "name a file that ends with .csv, .tsv, .jsonl, .parquet or "
              ".arrow");
}

std::unique_ptr<TableWriter> open_text_file(
    const std::string& path, TextFormat format,
    const std::vector<NewColumn>& columns) {
  auto file = std::make_shared<BufferedFile>(path);
  return text_writer(
      format, columns,
      [file](const std::string& text) {
        file->append(std::as_bytes(std::span(text)));
      },
      [file] { file->commit(); });
}

}  // namespace

void check_prediction_file(const std::string& path, const Json& source) {
  ending_of(path);
  std::error_code none;
  if (std::filesystem::is_directory(path, none))
    refuse_file("predict.out_folder", path, "it is a folder",
                "name a file in it: " + path + "/predictions.csv");
  const SourceSpec spec = parse_source_spec(source, "source");
  if (!spec.path.empty() && std::filesystem::equivalent(spec.path, path, none))
    refuse_file("predict.out_is_source", path,
                "it is the file that the rows are read from",
                "name another file");
}

std::unique_ptr<TableWriter> open_prediction_file(
    const std::string& path, const std::vector<NewColumn>& columns) {
  const Ending& ending = ending_of(path);
  const std::string kind = ending.kind;
  if (kind == "csv" || kind == "jsonl")
    return open_text_file(path, ending.format, columns);
  SourceSpec spec;
  spec.kind = kind;
  spec.path = path;
  return create_table(spec, columns, true);
}

}  // namespace penstock
