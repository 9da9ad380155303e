// Your own source, by position: the lines of a text file. Every line is a
// JSON list here, and becomes a set of two numbers.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "penstock/loader/loader.h"

namespace {

using namespace penstock;

/// Where the lines of a file begin; the last entry is its end.
std::vector<std::int64_t> starts_of_lines(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::int64_t> starts = {0};
  for (std::string line; std::getline(file, line);)
    starts.push_back(starts.back() + std::ssize(line) + 1);
  return starts;
}

SourceFacts about(const std::string& path,
                  const std::vector<ColumnRequest>& requests) {
  SourceFacts facts{.shown = path,
                    .schema = {{{.name = "line", .declared = "text"}}},
                    .abilities = {.by_position = true, .sorted = true}};
  for (const ColumnRequest& request : requests) {
    if (request.column != "line")
      throw Error(ErrorKind::request, {.what = "there is only a column 'line'",
                                       .where = request.setting});
    facts.types.push_back(ColumnType::json);
  }
  facts.identity["kind"] = "lines";
  facts.identity["path"] = path;
  return facts;
}

/// Reads lines; belongs to one thread.
class LineReader : public Reader {
 public:
  LineReader(const std::string& path, const std::vector<std::int64_t>& starts,
             const std::vector<ColumnType>& types)
      : file_(path, std::ios::binary), starts_(starts), types_(types) {}

  void read(const ReadRequest& request, Block& out) override {
    out = Block();
    out.rows = request.rows();
    for (ColumnType type : types_) out.columns.emplace_back().type = type;
    for (std::int64_t position : request.positions) {
      auto line = static_cast<std::size_t>(position);
      text_.resize(
          static_cast<std::size_t>(starts_[line + 1] - starts_[line] - 1));
      file_.seekg(starts_[line]);
      file_.read(text_.data(), std::ssize(text_));
      for (Column& column : out.columns) column.append_text(text_);
    }
  }

 private:
  std::ifstream file_;
  const std::vector<std::int64_t>& starts_;
  const std::vector<ColumnType>& types_;
  std::string text_;
};

/// Knows where its lines are, and so how many there are and how long.
class LineSource : public Source {
 public:
  LineSource(std::string path, const std::vector<ColumnRequest>& requests)
      : Source(about(path, requests)),
        path_(std::move(path)),
        starts_(starts_of_lines(path_)) {}

  RowCount count() const override {
    return {.rows = std::ssize(starts_) - 1, .exact = true};
  }
  std::unique_ptr<Reader> open_reader() override {
    return std::make_unique<LineReader>(path_, starts_, types());
  }

 private:
  const std::string path_;
  const std::vector<std::int64_t> starts_;
};

}  // namespace

int main(int argc, char** argv) try {
  TableDatasetOptions options;
  options.fields = parse_fields(
      Json::parse(
          R"({"points": {"json_set": {"column": "line", "keys": ["x", "y"],
                                      "max": 3}}})",
          "the example"),
      "fields");
  std::unique_ptr<Device> device = open_device({.kind = "cpu"});
  auto lines = std::make_unique<LineSource>(argc > 1 ? argv[1] : "points.jsonl",
                                            requests_of(options));
  auto rows = TableDataset::prepare(options, std::move(lines), *device);
  std::printf("%lld rows, fingerprint %s\n",
              static_cast<long long>(rows->rows()),
              rows->fingerprint().substr(0, 16).c_str());
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
