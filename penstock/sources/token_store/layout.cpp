#include "penstock/sources/token_store/layout.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <limits>
#include <span>
#include <utility>

#include "penstock/base/error.h"

namespace penstock::token_store {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& where,
                         std::string why) {
  throw Error(
      ErrorKind::source,
      {.code = "files.damaged",
       .what = "cannot read '" + path + "'",
       .where = where,
       .why = std::move(why),
       .next = "get an intact copy of the file together with its index"});
}

template <class Number>
Number number_at(std::span<const std::byte> bytes, std::size_t at) {
  Number number;
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

/// The fields of an index, one after the other.
class IndexReader {
 public:
  IndexReader(std::string path, std::span<const std::byte> bytes)
      : path_(std::move(path)), bytes_(bytes) {}

  template <class Number>
  Number take(const char* what) {
    return number_at<Number>(array(1, sizeof(Number), what), 0);
  }
  std::span<const std::byte> array(std::uint64_t count, std::size_t width,
                                   const char* what) {
    if (count > (bytes_.size() - at_) / width)
      refuse(path_, "byte " + std::to_string(at_),
             "the index ends within its " + std::string(what));
    const std::size_t begin = at_;
    at_ += static_cast<std::size_t>(count) * width;
    return bytes_.subspan(begin, at_ - begin);
  }

 private:
  const std::string path_;
  const std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

Dtype megatron_dtype(std::uint8_t code, const std::string& path) {
  switch (code) {
    case 1:
      return Dtype::uint8;
    case 3:
      return Dtype::int16;
    case 4:
      return Dtype::int32;
    case 5:
      return Dtype::int64;
    case 8:
      return Dtype::uint16;
    default:
      refuse(path, "byte 17",
             "the index declares the token type " + std::to_string(code) +
                 ", expected an integer type: 1, 3, 4, 5 or 8");
  }
}

/// The first document that is not in the tokens; those that there are: none.
std::size_t first_outside(const Layout& layout, std::int64_t tokens_bytes) {
  // Of widths that are powers of two, without a division for each document.
  const std::size_t width = size_of(layout.dtype);
  const auto within = static_cast<std::int64_t>(width - 1);
  const int shift = std::countr_zero(width);
  auto is_outside = [&](std::size_t d) {
    const std::int64_t length = layout.length(d), begin = layout.begin(d);
    return length < 0 || begin < 0 || (begin & within) != 0 ||
           begin > tokens_bytes || length > (tokens_bytes - begin) >> shift;
  };
  std::size_t first = 0;
  while (first < layout.documents() && !is_outside(first)) ++first;
  return first;
}

// Megatron-LM (core/datasets/indexed_dataset.py), numbers little-endian:
//   "MMIDIDX\0\0", uint64 version 1, uint8 type, uint64 sequences,
//   uint64 document ends, int32 length of each sequence in tokens,
//   int64 offset of each sequence in the .bin file in bytes, the document ends
// The arrays are borrowed from the mapping, behind a head of 34 bytes, where
// their numbers are not aligned: each is copied out when it is needed.
Layout megatron(const std::string& path, const std::string& index,
                std::size_t tokens_bytes) {
  Layout layout{.about = "Megatron", .index = map_data_file(index)};
  IndexReader reader(index, layout.index->bytes());
  const std::span<const std::byte> magic = reader.array(9, 1, "magic number");
  if (std::memcmp(magic.data(), "MMIDIDX\0", 9) != 0)
    refuse(index, "byte 0", "the index does not begin with MMIDIDX");
  const auto version = reader.take<std::uint64_t>("version");
  if (version != 1)
    refuse(index, "byte 9",
           "the index has version " + std::to_string(version) + ", expected 1");
  layout.dtype = megatron_dtype(reader.take<std::uint8_t>("type"), index);
  const auto count = reader.take<std::uint64_t>("number of documents");
  reader.take<std::uint64_t>("number of ends");
  layout.lengths_there = reader.array(count, sizeof(std::int32_t), "lengths");
  layout.begins_there = reader.array(count, sizeof(std::int64_t), "places");
  const std::size_t outside =
      first_outside(layout, static_cast<std::int64_t>(tokens_bytes));
  if (outside < layout.documents())
    refuse(index, "document " + std::to_string(outside),
           std::to_string(layout.length(outside)) + " tokens from byte " +
               std::to_string(layout.begin(outside)) + " on are not in '" +
               path + "', which has " + std::to_string(tokens_bytes) +
               " bytes");
  return layout;
}

/// Documents one after the other, which end at these tokens.
class Consecutive {
 public:
  Consecutive(Layout& layout, std::int64_t first)
      : layout_(layout),
        width_(static_cast<std::int64_t>(size_of(layout.dtype))),
        first_(first) {}

  void end_at(std::int64_t token) {
    layout_.begins.push_back(first_ + begin_ * width_);
    layout_.lengths.push_back(static_cast<std::int32_t>(token - begin_));
    begin_ = token;
  }
  std::int64_t begin() const { return begin_; }

 private:
  Layout& layout_;
  const std::int64_t width_, first_;
  std::int64_t begin_ = 0;
};

// Hugging Face datatrove: FILE.ds has tokens, FILE.ds.index the end of each
// document as a uint64, in tokens. The width of tokens stands nowhere: it
// follows from the last end and the size of the file.
Layout datatrove(const std::string& path, const std::string& index,
                 std::span<const std::byte> ends, std::size_t tokens_bytes) {
  const std::size_t count = ends.size() / sizeof(std::uint64_t);
  if (ends.size() % sizeof(std::uint64_t) != 0)
    refuse(index, "byte " + std::to_string(ends.size()),
           "the index is cut off within a number");
  const std::uint64_t tokens =
      count == 0 ? 0 : number_at<std::uint64_t>(ends, ends.size() - 8);
  Layout layout{.about = "datatrove"};
  layout.dtype =
      tokens > 0 && tokens_bytes / 4 == tokens ? Dtype::uint32 : Dtype::uint16;
  if (tokens > tokens_bytes || tokens * size_of(layout.dtype) != tokens_bytes)
    refuse(index, "its last number",
           "the index declares " + std::to_string(tokens) + " tokens, but '" +
               path + "' has " + std::to_string(tokens_bytes) + " bytes");
  Consecutive documents(layout, 0);
  for (std::size_t d = 0; d < count; ++d) {
    const auto end = number_at<std::uint64_t>(ends, d * sizeof(std::uint64_t));
    const auto begin = static_cast<std::uint64_t>(documents.begin());
    if (end < begin || end > tokens ||
        end - begin > std::numeric_limits<std::int32_t>::max())
      refuse(index, "document " + std::to_string(d),
             "the document ends at token " + std::to_string(end) +
                 ", but begins at token " + std::to_string(begin));
    documents.end_at(static_cast<std::int64_t>(end));
  }
  return layout;
}

constexpr std::int64_t kLongest = std::int64_t{1} << 28;  // tokens

/// Finds the ends of documents by the token that ends them. Without a token
/// that ends documents, a store is cut into pieces of kMostTokens; the last
/// piece is what is left.
template <class Token>
void find_ends(const std::string& path, std::span<const std::byte> bytes,
               std::int64_t document_end, std::int64_t first, StopFlag stop,
               Layout& layout) {
  Consecutive documents(layout, first);
  const auto count = static_cast<std::int64_t>(bytes.size() / sizeof(Token));
  const auto* tokens = reinterpret_cast<const Token*>(bytes.data());
  for (std::int64_t t = 0; t < count; ++t) {
    if (t % kMostTokens == 0) end_if_stopped(stop);
    const bool ends = document_end >= 0
                          ? tokens[t] == document_end
                          : t + 1 - documents.begin() == kMostTokens;
    if (!ends && t + 1 - documents.begin() > kLongest)
      refuse(path, "token " + std::to_string(documents.begin()),
             "no token " + std::to_string(document_end) +
                 " ends a document in the next " + std::to_string(kLongest));
    if (ends) documents.end_at(t + 1);
  }
  if (documents.begin() < count) documents.end_at(count);
}

// llm.c (dev/data/data_common.py): 256 numbers of int32, of which the first is
// the magic, the second a version, the third the number of tokens; then the
// tokens.
constexpr std::int32_t kNarrowMagic = 20240520, kWideMagic = 20240801;
constexpr std::size_t kHeader = 256 * sizeof(std::int32_t);

/// Zero where this is no file of llm.c.
std::int32_t llmc_magic(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeader) return 0;
  const auto magic = number_at<std::int32_t>(bytes, 0);
  return magic == kNarrowMagic || magic == kWideMagic ? magic : 0;
}

/// What our own export says beside a file; empty: nothing.
std::string dtype_beside(const std::string& path) {
  const std::filesystem::path about =
      std::filesystem::path(path).replace_extension(".json");
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(about, unknown)) return {};
  const Json json = Json::parse(real_files().read(about), about.string());
  const Json* dtype = json.is_object() ? json.find("dtype") : nullptr;
  return dtype != nullptr && dtype->is_string() ? dtype->string() : "";
}

Layout tokens_alone(const std::string& path, const FileSettings& settings,
                    std::span<const std::byte> bytes, StopFlag stop) {
  Layout layout{.about = "raw"};
  std::size_t first = 0;
  std::string dtype = settings.dtype;
  if (const std::int32_t magic = llmc_magic(bytes)) {
    layout.about = "llm.c";
    first = kHeader;
    dtype = magic == kNarrowMagic ? "uint16" : "uint32";
  }
  if (dtype.empty()) dtype = dtype_beside(path);
  if (dtype != "uint16" && dtype != "uint32")
    throw Error(ErrorKind::request,
                {.code = "source.dtype",
                 .what = "cannot read '" + path + "'",
                 .where = "source.dtype",
                 .why = "the width of the tokens is unknown",
                 .next = "set source.dtype to \"uint16\" or \"uint32\""});
  layout.dtype = dtype == "uint16" ? Dtype::uint16 : Dtype::uint32;
  const std::span<const std::byte> tokens = bytes.subspan(first);
  if (tokens.size() % size_of(layout.dtype) != 0)
    refuse(path, "byte " + std::to_string(bytes.size()),
           "the file ends within a token of " + dtype);
  if (first > 0) {
    const auto count = number_at<std::int32_t>(bytes, 2 * sizeof(std::int32_t));
    if (count < 0 || static_cast<std::size_t>(count) * size_of(layout.dtype) !=
                         tokens.size())
      refuse(path, "byte 8",
             "the file declares " + std::to_string(count) +
                 " tokens, but has " +
                 std::to_string(tokens.size() / size_of(layout.dtype)));
  }
  const auto begin = static_cast<std::int64_t>(first);
  if (layout.dtype == Dtype::uint16 && settings.document_end > UINT16_MAX)
    throw Error(ErrorKind::request,
                {.code = "source.document_end",
                 .what = "cannot read '" + path + "'",
                 .where = "source.document_end",
                 .why = "the tokens of the file have 2 bytes and cannot be " +
                        std::to_string(settings.document_end),
                 .next = "name the token that ends a document"});
  if (layout.dtype == Dtype::uint16)
    find_ends<std::uint16_t>(path, tokens, settings.document_end, begin, stop,
                             layout);
  else
    find_ends<std::uint32_t>(path, tokens, settings.document_end, begin, stop,
                             layout);
  return layout;
}

}  // namespace

std::string index_of(const std::string& path) {
  const std::filesystem::path tokens(path);
  std::filesystem::path index;
  if (tokens.extension() == ".ds")
    index = path + ".index";
  else
    index = std::filesystem::path(path).replace_extension(".idx");
  std::error_code unknown;
  return std::filesystem::is_regular_file(index, unknown) ? index.string() : "";
}

Layout find_layout(const files::DataFile& file, const FileSettings& settings,
                   std::span<const std::byte> tokens, StopFlag stop) {
  const std::string index = index_of(file.path);
  if (index.empty()) return tokens_alone(file.path, settings, tokens, stop);
  if (index.ends_with(".idx")) return megatron(file.path, index, tokens.size());
  const std::string bytes = real_files().read(index);
  return datatrove(file.path, index, std::as_bytes(std::span(bytes)),
                   tokens.size());
}

}  // namespace penstock::token_store
