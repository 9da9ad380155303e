#include <string>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/utf8.h"
#include "penstock/sources/text/text_file.h"

// Text without any structure: a file is a document, or each of its lines is
// one. A document is bytes, not UTF-8: what shall be done with others than
// that, the field that reads them says.

namespace penstock::text {
namespace {

using files::FileColumn;

constexpr std::int64_t kLongestDocument = std::int64_t{1} << 30;

[[noreturn]] void refuse_long(const PlainText& text) {
  throw Error(
      ErrorKind::source,
      {.code = "files.too_long",
       .what = "cannot use the file as one document",
       .where = text.file().path,
       .why = "the file has " + std::to_string(text.size()) +
              " bytes of text, but a document must have less than 1 GiB",
       .next = "split the file into several, or set source.by to \"line\""});
}

struct DocumentsFile final : files::RowFile,
                             std::enable_shared_from_this<DocumentsFile> {
  DocumentsFile(const files::DataFile& file, const FileSettings& settings,
                StopFlag stop)
      : text(file, settings.encoding, stop,
             settings.by_line
                 ? std::optional<QuotationMarks>(QuotationMarks('\0', '\0'))
                 : std::nullopt),
        by_line(settings.by_line) {
    FileColumn document{
        .name = "text", .declared = "text", .type = ColumnType::binary};
    if (!ChosenTypes(settings).of(document.name).empty())
      document.type = ColumnType::text;
    facts_.columns = {
        document,
        {.name = "path", .declared = "text", .type = ColumnType::text}};
    if (by_line) {
      TextRows rows = find_rows(text, 0, 1, {}, stop);
      chunks = std::move(rows.chunks);
      facts_.chunk_ends = std::move(rows.ends);
      return;
    }
    if (text.size() >= kLongestDocument) refuse_long(text);
    chunks.push_back({.bytes = text.size()});
    facts_.chunk_ends.push_back(1);
  }
  std::unique_ptr<files::ChunkReader> open(
      const std::vector<std::size_t>& columns) const override;

  const PlainText text;
  const bool by_line;
  std::vector<TextChunk> chunks;
};

class DocumentsReader final : public files::ChunkReader {
 public:
  DocumentsReader(std::shared_ptr<const DocumentsFile> file,
                  std::vector<std::size_t> columns)
      : file_(std::move(file)), columns_(std::move(columns)) {}

  void read(std::int64_t chunk, const files::PieceSink& sink) override {
    const TextChunk& of = file_->chunks[static_cast<std::size_t>(chunk)];
    const std::string_view bytes = buffer_.read(file_->text, of);
    Block block;
    for (std::size_t column : columns_)
      block.columns.emplace_back().type = file_->facts().columns[column].type;
    if (file_->by_line)
      each_row(bytes, {}, of.line,
               [&](std::string_view row, std::int64_t line) {
                 append(row, line, block);
               });
    else
      append(bytes, 1, block);
    sink(std::move(block));
  }

 private:
  void append(std::string_view document, std::int64_t line, Block& block) {
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      Column& to = block.columns[c];
      if (columns_[c] == 1) {
        to.append_text(file_->text.file().path);
      } else if (to.type.is_text() && !is_utf8(document)) {
        block.problems.push_back(
            {block.rows, c,
             "holds " + shown_text(document) + " (" + file_->text.place(line) +
                 "); name its encoding as source.encoding"});
        to.append_null();
      } else {
        to.append_text(document);
      }
    }
    ++block.rows;
  }

  const std::shared_ptr<const DocumentsFile> file_;
  const std::vector<std::size_t> columns_;
  ChunkBuffer buffer_;
};

std::unique_ptr<files::ChunkReader> DocumentsFile::open(
    const std::vector<std::size_t>& columns) const {
  return std::make_unique<DocumentsReader>(shared_from_this(), columns);
}

}  // namespace

std::vector<std::shared_ptr<const files::RowFile>> open_documents(
    const SourceSpec& spec, const std::vector<files::DataFile>& data,
    StopFlag stop) {
  const FileSettings& settings = file_settings_of(spec);
  return files::open_each(data, stop, [&](const files::DataFile& file) {
    return std::make_shared<DocumentsFile>(file, settings, stop);
  });
}

}  // namespace penstock::text
