#include "penstock/sources/token_store/token_file.h"

#include <algorithm>
#include <utility>

#include "penstock/sources/files/file_settings.h"
#include "penstock/sources/files/mapped_file.h"
#include "penstock/sources/token_store/layout.h"

namespace penstock::token_store {
namespace {

/// Tokens that are decoded together, about.
constexpr std::int64_t kChunk = 1 << 20;

struct TokenFile final : files::RowFile,
                         std::enable_shared_from_this<TokenFile> {
  TokenFile(const files::DataFile& file, const FileSettings& settings,
            StopFlag stop)
      : mapped(file),
        layout(find_layout(file, settings, mapped.bytes(), stop)) {
    facts_.columns = {{.name = "input_ids",
                       .declared = std::string(name_of(layout.dtype)) + "[]",
                       .type = ColumnType::list}};
    std::int64_t tokens = 0;
    const std::size_t documents = layout.documents();
    for (std::size_t d = 0; d < documents; ++d) {
      tokens += layout.length(d);
      if (tokens < kChunk && d + 1 < documents) continue;
      facts_.chunk_ends.push_back(static_cast<std::int64_t>(d) + 1);
      tokens = 0;
    }
  }
  /// An index: no rows, of the columns that a store has.
  TokenFile() {
    facts_.columns = {{.name = "input_ids",
                       .declared = "uint16[]",
                       .type = ColumnType::list}};
  }

  std::unique_ptr<files::ChunkReader> open(
      const std::vector<std::size_t>& columns) const override;

  const files::MappedFile mapped;
  const Layout layout;
};

/// The tokens of documents that stand one after the other are borrowed.
class TokenReader final : public files::ChunkReader {
 public:
  TokenReader(std::shared_ptr<const TokenFile> file, std::size_t columns)
      : file_(std::move(file)), columns_(columns) {}

  void read(std::int64_t chunk, const files::PieceSink& sink) override {
    const auto first = static_cast<std::size_t>(file_->chunk_begin(chunk));
    const auto end = static_cast<std::size_t>(file_->chunk_end(chunk));
    Block block;
    block.rows = static_cast<std::int64_t>(end - first);
    for (std::size_t at = 0; at < columns_; ++at)
      block.columns.push_back(column_of(first, end));
    sink(std::move(block));
  }

 private:
  // Documents may lie anywhere in the file, in any order and more than once (as
  // after a shuffle by index). Only where those of a chunk follow each other,
  // and begin at an address that the type may have, is the mapping lent; else
  // they are copied.
  Column column_of(std::size_t first, std::size_t end) const {
    const Layout& layout = file_->layout;
    const std::size_t width = size_of(layout.dtype);
    Column column;
    column.type = ColumnType::list;
    column.length = static_cast<std::int64_t>(end - first);
    std::int64_t tokens = 0;
    bool consecutive = true;
    column.offsets.append_value(tokens);
    for (std::size_t d = first; d < end; ++d) {
      consecutive &=
          layout.begin(d) ==
          layout.begin(first) + tokens * static_cast<std::int64_t>(width);
      tokens += layout.length(d);
      column.offsets.append_value(tokens);
    }
    Column& child = column.children.emplace_back();
    child.type = ColumnType::number(layout.dtype);
    child.length = tokens;
    const std::span<const std::byte> bytes = file_->mapped.bytes();
    auto begin = [&](std::size_t d) {
      return static_cast<std::size_t>(layout.begin(d));
    };
    const bool aligned =
        reinterpret_cast<std::uintptr_t>(bytes.data() + begin(first)) % width ==
        0;
    if (consecutive && aligned && tokens > 0) {
      child.values = Bytes::borrow(
          bytes.subspan(begin(first), static_cast<std::size_t>(tokens) * width),
          file_->mapped.owner());
      return column;
    }
    for (std::size_t d = first; d < end; ++d)
      child.values.append(bytes.data() + begin(d),
                          static_cast<std::size_t>(layout.length(d)) * width);
    return column;
  }

  const std::shared_ptr<const TokenFile> file_;
  const std::size_t columns_;
};

std::unique_ptr<files::ChunkReader> TokenFile::open(
    const std::vector<std::size_t>& columns) const {
  return std::make_unique<TokenReader>(shared_from_this(), columns.size());
}

bool is_index(const files::DataFile& file) {
  return file.path.ends_with(".idx") || file.path.ends_with(".index");
}

}  // namespace

std::vector<files::DataFile> find_stores(const SourceSpec& spec,
                                         const SourceKind& kind) {
  std::vector<files::DataFile> all;
  for (files::DataFile& file : files::find_files(spec, kind)) {
    if (is_index(file))
      files::refuse_path("files.none", file.path,
                         "this is the index of a store, without tokens",
                         "name the token file next to it: .bin or .ds");
    const std::string index = index_of(file.path);
    const std::string relative =
        file.relative + (file.path.ends_with(".ds") ? ".index" : ".idx");
    all.push_back(std::move(file));
    if (!index.empty()) all.push_back(files::file_at(index, relative));
  }
  return all;
}

std::vector<std::shared_ptr<const files::RowFile>> open_stores(
    const SourceSpec& spec, const std::vector<files::DataFile>& data,
    StopFlag stop) {
  const FileSettings& settings = file_settings_of(spec);
  return files::open_each(data, stop, [&](const files::DataFile& file) {
    return is_index(file) ? std::make_shared<TokenFile>()
                          : std::make_shared<TokenFile>(file, settings, stop);
  });
}

}  // namespace penstock::token_store
