#include "penstock/run/token_export.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace penstock {
namespace {

[[noreturn]] void refuse(const char* code, std::string why, std::string next) {
  throw Error(ErrorKind::request, {.code = code,
                                   .what = "cannot export tokens",
                                   .where = "--export",
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

/// A file that is written in large pieces.
class BufferedFile {
 public:
  explicit BufferedFile(const std::filesystem::path& path)
      : file_(real_files().create(path)) {}

  void append(std::span<const std::byte> bytes) {
    bytes_ += std::ssize(bytes);
    held_.append(bytes.data(), bytes.size());
    if (held_.size() >= kPiece) flush();
  }
  template <class Number>
  void append_number(Number number) {
    append(std::as_bytes(std::span(&number, 1)));
  }
  std::int64_t commit() {
    flush();
    file_->commit();
    return bytes_;
  }

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 20;
  void flush() {
    file_->append(held_.span());
    held_.clear();
  }
  std::unique_ptr<FileWriter> file_;
  Bytes held_;
  std::int64_t bytes_ = 0;
};

struct Documents {
  const RunTable& runs;
  std::int64_t tokens = 0;

  explicit Documents(const RunTable& of)
      : runs(of),
        tokens(static_cast<std::int64_t>(of.bytes() / of.element_bytes())) {}
  bool narrow() const { return runs.element_bytes() == sizeof(std::uint16_t); }
  void append_to(BufferedFile& file) const {
    for (std::int64_t row = 0; row < runs.rows(); ++row)
      file.append(runs.row(row));
  }
};

std::int64_t write_llmc(const Documents& documents,
                        const std::filesystem::path& path) {
  if (documents.tokens > std::numeric_limits<std::int32_t>::max())
    refuse("export.too_many",
           "there are " + std::to_string(documents.tokens) +
               " tokens, and llm.c counts them in 32 bits",
           "use \"raw\" or \"megatron\", or export parts ('source.where')");
  constexpr std::int32_t kNarrow = 20240520, kWide = 20240801;
  std::array<std::int32_t, 256> header = {};
  header[0] = documents.narrow() ? kNarrow : kWide;
  header[1] = documents.narrow() ? 1 : 7;
  header[2] = static_cast<std::int32_t>(documents.tokens);
  BufferedFile file(path);
  file.append(std::as_bytes(std::span(header)));
  documents.append_to(file);
  return file.commit();
}

/// Of what bytes of the tokens begin each document, behind the lengths.
std::int64_t write_megatron_index(const Documents& documents,
                                  const std::filesystem::path& path) {
  constexpr std::uint8_t kInt32 = 4, kUint16 = 8;
  BufferedFile file(path);
  file.append(std::as_bytes(std::span("MMIDIDX\0", 9)));
  file.append_number(std::uint64_t{1});
  file.append_number(documents.narrow() ? kUint16 : kInt32);
  const std::span<const std::int32_t> lengths = documents.runs.lengths();
  file.append_number(std::uint64_t{lengths.size()});
  file.append_number(std::uint64_t{lengths.size() + 1});
  file.append(std::as_bytes(lengths));
  std::int64_t at = 0;
  for (std::int32_t length : lengths) {
    file.append_number(at);
    at += length * static_cast<std::int64_t>(documents.runs.element_bytes());
  }
  for (std::int64_t row = 0; row <= std::ssize(lengths); ++row)
    file.append_number(row);
  return file.commit();
}

std::int64_t write_tokens(const Documents& documents,
                          const std::filesystem::path& path) {
  BufferedFile file(path);
  documents.append_to(file);
  return file.commit();
}

void write_about(const Documents& documents,
                 const std::filesystem::path& path) {
  Json about;
  about["dtype"] = documents.narrow() ? "uint16" : "uint32";
  about["tokens"] = documents.tokens;
  about["documents"] = documents.runs.rows();
  real_files().write_atomic(path, about.dump() + "\n");
}

const RunTable& runs_of_tokens(const TableDataset& rows) {
  for (std::size_t f = 0; f < rows.fields().size(); ++f) {
    const Json& found = rows.statistics_of(rows.fields()[f].name);
    if (!found.is_object() || found.find("documents") == nullptr) continue;
    if (found.find("targets") != nullptr)
      refuse("export.masked",
             "its tokens know whether they are targets, which no export can "
             "say",
             "export a field without \"chat\" and \"completion\"");
    PENSTOCK_ASSERT(rows.plan().tier != Tier::none, "rows are kept to export");
    return *rows.runs(f);
  }
  refuse("export.no_tokens", "no field of the job is of the kind 'tokens'",
         "give it one: {\"tokens\": {\"column\": ...}}");
}

}  // namespace

void check_token_export(const std::string& format) {
  for (const char* known : {"megatron", "llmc", "raw"})
    if (format == known) return;
  refuse("export.format", "found '" + format + "'",
         "use \"megatron\", \"llmc\" or \"raw\"");
}

Json export_tokens(const TableDataset& rows, const std::string& format,
                   const std::filesystem::path& dir) {
  check_token_export(format);
  const Documents documents(runs_of_tokens(rows));
  real_files().make_folders(dir);
  Json json;
  json["format"] = format;
  json["dir"] = dir.string();
  json["documents"] = documents.runs.rows();
  json["tokens"] = documents.tokens;
  const std::filesystem::path tokens = dir / "tokens.bin";
  // Of an earlier export, which would be read as those of this one.
  for (const char* beside : {"tokens.idx", "tokens.json"}) {
    std::error_code none;
    std::filesystem::remove(dir / beside, none);
  }
  std::int64_t bytes = 0;
  if (format == "llmc") {
    bytes = write_llmc(documents, tokens);
  } else {
    bytes = write_tokens(documents, tokens);
    if (format == "megatron")
      bytes += write_megatron_index(documents, dir / "tokens.idx");
    else
      write_about(documents, dir / "tokens.json");
  }
  json["bytes"] = bytes;
  return json;
}

}  // namespace penstock
