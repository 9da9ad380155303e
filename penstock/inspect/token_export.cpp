#include "penstock/inspect/token_export.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "penstock/inspect/arrow_stream.h"
#include "penstock/session/session.h"

namespace penstock {
namespace {

[[noreturn]] void refuse(const char* code, std::string why, std::string next) {
  throw Error(ErrorKind::request, {.code = code,
                                   .what = "cannot export tokens",
                                   .where = "--export",
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

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
           "the field has " + std::to_string(documents.tokens) +
               " tokens, but llm.c counts tokens in 32 bits",
           "use \"raw\" or \"megatron\", or export parts of the rows "
           "('source.where')");
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

/// Of what bytes of the tokens begin each document, behind the lengths. Bytes
/// as token_store/layout.cpp describes them. The last list has the number of
/// each document's first sequence, and one more entry for the end; here each
/// document is one sequence.
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

/// Behind which token each document ends.
std::int64_t write_ends(const Documents& documents,
                        const std::filesystem::path& path) {
  BufferedFile file(path);
  std::uint64_t end = 0;
  for (std::int32_t length : documents.runs.lengths())
    file.append_number(end += static_cast<std::uint64_t>(length));
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

/// As int32, which is what data sets of tokens have.
template <class Token>
void widen(std::span<const std::byte> row, std::vector<std::int32_t>& to) {
  to.resize(row.size() / sizeof(Token));
  for (std::size_t i = 0; i < to.size(); ++i) {
    Token token{};
    std::memcpy(&token, row.data() + i * sizeof(Token), sizeof(Token));
    if (!std::in_range<std::int32_t>(token))
      refuse("export.too_many",
             "token " + std::to_string(token) + " takes more than 31 bits",
             "use \"raw\" or \"megatron\"");
    to[i] = static_cast<std::int32_t>(token);
  }
}

/// What save_to_disk() of `datasets` writes: rows of `input_ids`, in files of
/// about half a gigabyte. Features are left to the files' own schema, which
/// every version of that library understands.
std::int64_t write_hf(const Documents& documents,
                      const std::filesystem::path& dir,
                      const std::string& fingerprint) {
  constexpr std::int64_t kShard = 500'000'000;
  const std::int64_t rows = documents.runs.rows();
  const std::int64_t shards = 1 + 4 * (documents.tokens + rows) / kShard;
  std::int64_t bytes = 0, row = 0;
  std::vector<std::int32_t> ids;
  Json files(Json::Array{});
  for (std::int64_t shard = 0; shard < shards; ++shard) {
    std::array<char, 64> name;
    std::snprintf(name.data(), name.size(), "data-%05lld-of-%05lld.arrow",
                  static_cast<long long>(shard),
                  static_cast<long long>(shards));
    ArrowListStream file(dir / name.data(), "input_ids");
    for (; row <
           rows / shards * (shard + 1) + rows % shards * (shard + 1) / shards;
         ++row) {
      if (documents.narrow())
        widen<std::uint16_t>(documents.runs.row(row), ids);
      else
        widen<std::uint32_t>(documents.runs.row(row), ids);
      file.append(ids);
    }
    bytes += file.commit();
    Json entry;
    entry["filename"] = name.data();
    files.push_back(std::move(entry));
  }
  Json state;
  state["_data_files"] = std::move(files);
  state["_fingerprint"] = fingerprint.substr(0, 16);
  for (const char* none : {"_format_columns", "_format_type", "_split"})
    state[none] = Json();
  state["_format_kwargs"] = Json(Json::Object{});
  state["_output_all_columns"] = false;
  real_files().write_atomic(dir / "state.json", state.dump(2) + "\n");
  Json info;
  for (const char* empty : {"citation", "description", "homepage", "license"})
    info[empty] = "";
  info["features"] = Json();
  real_files().write_atomic(dir / "dataset_info.json", info.dump(2) + "\n");
  return bytes;
}

const RunTable& runs_of_tokens(const DatasetFacts& rows) {
  for (std::size_t f = 0; f < rows.runs.size(); ++f) {
    const Json& found = rows.fitted->statistics[f];
    if (!found.is_object() || found.find("documents") == nullptr) continue;
    if (found.find("targets") != nullptr)
      refuse("export.masked",
             "the field marks which tokens are targets, which an export cannot "
             "hold",
             "export a field without \"chat\" and \"completion\"");
    PENSTOCK_ASSERT(rows.plan.tier != Tier::none, "rows are kept to export");
    return *rows.runs[f];
  }
  refuse("export.no_tokens", "the job has no field of kind \"tokens\"",
         "add one: {\"tokens\": {\"column\": ...}}");
}

}  // namespace

void check_token_export(const std::string& format) {
  for (const char* known : {"hf", "megatron", "datatrove", "llmc", "raw"})
    if (format == known) return;
  refuse("export.format", "found '" + format + "'",
         "use \"hf\", \"megatron\", \"datatrove\", \"llmc\" or \"raw\"");
}

Json export_tokens(const Dataset& rows, const std::string& format,
                   const std::filesystem::path& dir) {
  check_token_export(format);
  const Documents documents(runs_of_tokens(rows.facts()));
  real_files().make_folders(dir);
  Json json;
  json["format"] = format;
  json["dir"] = dir.string();
  json["documents"] = documents.runs.rows();
  json["tokens"] = documents.tokens;
  const std::filesystem::path tokens = dir / "tokens.bin";
  // Of an earlier export, which would be read as those of this one.
  for (const char* beside :
       {"tokens.idx", "tokens.json", "state.json", "dataset_info.json"}) {
    std::error_code none;
    std::filesystem::remove(dir / beside, none);
  }
  std::int64_t bytes = 0;
  if (format == "hf") {
    bytes = write_hf(documents, dir, rows.fingerprint());
  } else if (format == "datatrove") {
    bytes = write_tokens(documents, dir / "tokens.ds") +
            write_ends(documents, dir / "tokens.ds.index");
  } else if (format == "llmc") {
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
