#include "penstock/sources/tfrecord/record_file.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "penstock/base/crc32c.h"
#include "penstock/base/error.h"
#include "penstock/base/utf8.h"
#include "penstock/sources/files/mapped_file.h"
#include "penstock/sources/tfrecord/example.h"
#include "penstock/sources/tfrecord/unpacked.h"

namespace penstock::tfrecord {
namespace {

constexpr std::size_t kHeader = 12, kFooter = 4;
constexpr std::int64_t kChunkRows = 256;
constexpr std::size_t kChunkBytes = std::size_t{4} << 20;
constexpr std::size_t kSampled = 100;

[[noreturn]] void damaged(const std::string& path, std::size_t record,
                          std::string why,
                          std::string next = "get an intact copy of the file") {
  throw Error(ErrorKind::source,
              {.code = "files.damaged",
               .what = "cannot read the TFRecord file",
               .where = path + ", record " + std::to_string(record),
               .why = std::move(why),
               .next = std::move(next)});
}

/// TFRecord turns a CRC around, so that a CRC over bytes that hold CRCs is not
/// a fixed value. A record (tensorflow/core/lib/io/record_writer.h), numbers
/// little-endian:
///   uint64  length
///   uint32  masked CRC-32C of the length
///   bytes   data
///   uint32  masked CRC-32C of the data
/// The mask is ((crc >> 15) | (crc << 17)) + 0xa282ead8, modulo 2^32.
std::uint32_t masked(std::uint32_t crc) {
  return (crc >> 15 | crc << 17) + 0xA282EAD8U;
}

bool has_crc(std::span<const std::byte> bytes, const std::byte* crc) {
  std::uint32_t expected = 0;
  std::memcpy(&expected, crc, sizeof(expected));
  return masked(crc32c(bytes)) == expected;
}

std::string_view message_of(std::span<const std::byte> data) {
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

bool is_text(std::string_view bytes) {
  return is_utf8(bytes) && std::ranges::none_of(bytes, [](char c) {
           return c >= 0 && c < ' ' && c != '\n' && c != '\t' && c != '\r';
         });
}

constexpr const char* kTexts = "bytes[]";
constexpr const char* kSeveral = "the feature holds several texts in a record";
constexpr const char* kWrite = "write each text as a separate feature";

struct RecordFile final : files::RowFile,
                          std::enable_shared_from_this<RecordFile> {
  RecordFile(const files::DataFile& file, StopFlag stopped)
      : path(file.path), mapped(file), stop(stopped) {
    packed = !begins_with_record(mapped.bytes()) && is_packed(mapped.bytes());
    if (packed)
      index(unpacked(mapped.bytes(), path, stop));
    else
      index(mapped.bytes());
    if (packed) facts_.decoded_bytes = end;
    for (const files::FileColumn& column : facts_.columns)
      if (column.declared == kTexts)
        facts_.left_out.push_back({column.name, kSeveral, kWrite});
  }

  std::size_t end_of(std::size_t record) const {
    return record + 1 < begins.size() ? begins[record + 1] : end;
  }
  /// `all`: the file's bytes, unpacked.
  std::span<const std::byte> data_of(std::span<const std::byte> all,
                                     std::size_t record) const {
    return all.subspan(begins[record] + kHeader,
                       end_of(record) - begins[record] - kHeader - kFooter);
  }

  std::unique_ptr<files::ChunkReader> open(
      const std::vector<std::size_t>& columns) const override;
  std::shared_ptr<const files::RowFile> for_columns(
      const std::vector<files::ReadColumn>& wanted) const override {
    for (const files::ReadColumn& one : wanted)
      if (const files::FileColumn& column = facts_.columns[one.column];
          column.declared == kTexts)
        throw Error(ErrorKind::source,
                    {.code = "arrays.type",
                     .what = "cannot read feature '" + column.name + "'",
                     .where = path,
                     .why = kSeveral,
                     .next = kWrite});
    return nullptr;
  }
  ReaderMemory reader_memory(const std::vector<std::size_t>&) const override {
    return packed ? ReaderMemory{.scanning = end, .by_position = end}
                  : ReaderMemory{};
  }

  const std::string path;
  const files::MappedFile mapped;
  const StopFlag stop;
  bool packed = false;              // as a whole: it is one chunk
  std::vector<std::size_t> begins;  // of records
  std::size_t end = 0;

 private:
  static bool begins_with_record(std::span<const std::byte> all) {
    constexpr std::size_t kLength = sizeof(std::uint64_t);
    return all.size() >= kHeader &&
           has_crc(all.first(kLength), all.data() + kLength);
  }

  // There is no index in the file: records are walked over once, length by
  // length, which touches 12 bytes of each. The CRC of a length is checked
  // here, as a wrong one would lead anywhere; that of the data when a record is
  // read, so that damage there costs one row.
  void index(std::span<const std::byte> all) {
    std::vector<std::int64_t>& ends = facts_.chunk_ends;
    std::size_t chunk = 0;
    while (end < all.size()) {
      if (begins.size() % 1024 == 0) end_if_stopped(stop);
      std::uint64_t length = 0;
      if (all.size() - end < kHeader + kFooter)
        damaged(path, begins.size(), "the file ends within the record");
      std::memcpy(&length, all.data() + end, sizeof(length));
      if (!has_crc(all.subspan(end, sizeof(length)),
                   all.data() + end + sizeof(length)))
        damaged(path, begins.size(),
                "the checksum (CRC) of the length differs: the file is "
                "damaged, or is not a TFRecord file");
      if (length > all.size() - end - kHeader - kFooter)
        damaged(path, begins.size(),
                "the record has " + std::to_string(length) +
                    " bytes, more than the file");
      begins.push_back(end);
      end += kHeader + static_cast<std::size_t>(length) + kFooter;
      const auto rows = static_cast<std::int64_t>(begins.size());
      const std::int64_t first = ends.empty() ? 0 : ends.back();
      if (packed || (rows - first < kChunkRows && end - chunk < kChunkBytes))
        continue;
      ends.push_back(rows);
      chunk = end;
    }
    const auto rows = static_cast<std::int64_t>(begins.size());
    if (rows > (ends.empty() ? 0 : ends.back())) ends.push_back(rows);
    find_columns(all);
  }

  struct Seen {
    FeatureKind kind = FeatureKind::empty;
    bool single = true, text = true;
  };

  void find_columns(std::span<const std::byte> all) {
    std::map<std::string, Seen> seen;
    Features features;
    Feature feature;
    for (std::size_t r = 0; r < std::min(begins.size(), kSampled); ++r) {
      // One that is damaged is a bad row when it is read.
      const auto data = data_of(all, r);
      if (!has_crc(data, data.data() + data.size())) continue;
      std::string why = read_example(message_of(data), features);
      if (!why.empty())
        damaged(path, r, why, "write the records as tf.train.Example");
      for (const auto& [name, message] : features) {
        why = read_feature(message, feature);
        if (!why.empty()) damaged(path, r, why);
        Seen& of = seen[std::string(name)];
        if (feature.kind == FeatureKind::empty || feature.count() == 0) {
          of.single &= feature.kind == FeatureKind::empty;
          continue;
        }
        if (of.kind != FeatureKind::empty && of.kind != feature.kind)
          damaged(path, r,
                  "feature '" + std::string(name) +
                      "' has another type than in earlier records",
                  "write the values of a feature with one type in all records");
        of.kind = feature.kind;
        of.single &= feature.count() == 1;
        for (std::string_view bytes : feature.bytes) of.text &= is_text(bytes);
      }
    }
    for (const auto& [name, of] : seen)
      facts_.columns.push_back(column_of(name, of));
  }

  static files::FileColumn column_of(const std::string& name, const Seen& of) {
    switch (of.kind) {
      case FeatureKind::floats:
        return {.name = name,
                .declared = of.single ? "float" : "float[]",
                .type = of.single ? ColumnType::number(Dtype::float32)
                                  : ColumnType::list};
      case FeatureKind::integers:
        return {.name = name,
                .declared = of.single ? "int64" : "int64[]",
                .type = of.single ? ColumnType::int64 : ColumnType::list};
      case FeatureKind::bytes:
        return {.name = name,
                .declared = of.single ? "bytes" : kTexts,
                .type = of.text ? ColumnType::text : ColumnType::binary};
      case FeatureKind::empty:
        break;
    }
    return {.name = name, .declared = "empty", .type = ColumnType::null};
  }
};

class RecordReader final : public files::ChunkReader {
 public:
  RecordReader(std::shared_ptr<const RecordFile> file,
               std::vector<std::size_t> columns)
      : file_(std::move(file)), columns_(std::move(columns)) {}

  void read(std::int64_t chunk, const files::PieceSink& sink) override {
    const auto first = static_cast<std::size_t>(file_->chunk_begin(chunk));
    const auto end = static_cast<std::size_t>(file_->chunk_end(chunk));
    const std::span<const std::byte> all = bytes();
    for (std::size_t record = first; record < end;) {
      Block block = begun();
      const std::size_t from = file_->begins[record];
      do add(all, record++, block);
      while (record < end && block.rows < kChunkRows &&
             file_->begins[record] - from < kChunkBytes);
      if (!sink(std::move(block))) return;
    }
  }

 private:
  /// The file's records; of one that is compressed, unpacked once.
  std::span<const std::byte> bytes() {
    if (!file_->packed) return file_->mapped.bytes();
    if (unpacked_.empty())
      unpacked_ = unpacked(file_->mapped.bytes(), file_->path, file_->stop);
    if (unpacked_.size() != file_->end)
      damaged(file_->path, 0, "the file has changed since it was opened");
    return unpacked_;
  }

  Block begun() const {
    Block block;
    for (std::size_t at : columns_) {
      const files::FileColumn& about = file_->facts().columns[at];
      Column& column = block.columns.emplace_back();
      column.type = about.type;
      if (column.type.kind == ColumnKind::list)
        column.children.emplace_back().type =
            about.declared == "float[]" ? ColumnType::number(Dtype::float32)
                                        : ColumnType::int64;
    }
    return block;
  }

  void add(std::span<const std::byte> all, std::size_t record, Block& block) {
    const auto data = file_->data_of(all, record);
    std::string why =
        has_crc(data, data.data() + data.size())
            ? read_example(message_of(data), features_)
            : "the bytes of the record do not match their checksum (CRC)";
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      Column& column = block.columns[c];
      std::string own = why;
      if (own.empty())
        own = append(file_->facts().columns[columns_[c]].name, column);
      if (column.length > block.rows) continue;
      column.append_null();
      if (!own.empty())
        block.problems.push_back({block.rows, c,
                                  "cannot be read from '" + file_->path +
                                      "', record " + std::to_string(record) +
                                      ": " + own});
    }
    ++block.rows;
  }

  /// Appends nothing where there is no value, or something is wrong.
  std::string append(const std::string& name, Column& column) {
    const auto found = features_.find(name);
    if (found == features_.end()) return {};
    std::string why = read_feature(found->second, feature_);
    if (!why.empty() || feature_.kind == FeatureKind::empty) return why;
    const ColumnKind kind = column.type.kind;
    const bool bytes = kind == ColumnKind::utf8 || kind == ColumnKind::binary;
    const bool list = kind == ColumnKind::list;
    const Dtype dtype = list    ? column.children[0].type.dtype
                        : bytes ? Dtype::uint8
                                : column.type.dtype;
    const FeatureKind expected = bytes ? FeatureKind::bytes
                                 : dtype == Dtype::float32
                                     ? FeatureKind::floats
                                     : FeatureKind::integers;
    if (kind == ColumnKind::null || feature_.kind != expected)
      return "feature '" + name +
             "' has another type than in the first records";
    if (!list && feature_.count() != 1)
      return "feature '" + name + "' has " + std::to_string(feature_.count()) +
             " values, expected one, as in the first records";
    if (bytes) {
      if (column.type.is_text() && !is_utf8(feature_.bytes[0]))
        return "feature '" + name + "' holds " + shown_text(feature_.bytes[0]);
      column.append_text(feature_.bytes[0]);
      return {};
    }
    Column& numbers = list ? column.children[0] : column;
    for (float value : feature_.floats) numbers.append_number(value);
    for (std::int64_t value : feature_.integers) numbers.append_number(value);
    if (list) column.append_list();
    return {};
  }

  const std::shared_ptr<const RecordFile> file_;
  const std::vector<std::size_t> columns_;
  std::vector<std::byte> unpacked_;
  Features features_;
  Feature feature_;
};

std::unique_ptr<files::ChunkReader> RecordFile::open(
    const std::vector<std::size_t>& columns) const {
  return std::make_unique<RecordReader>(shared_from_this(), columns);
}

}  // namespace

std::vector<std::shared_ptr<const files::RowFile>> open_records(
    const SourceSpec&, const std::vector<files::DataFile>& data,
    StopFlag stop) {
  return files::open_each(data, stop, [&](const files::DataFile& file) {
    return std::make_shared<RecordFile>(file, stop);
  });
}

}  // namespace penstock::tfrecord
