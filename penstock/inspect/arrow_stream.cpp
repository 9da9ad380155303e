#include "penstock/inspect/arrow_stream.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <utility>

// Messages are tables of FlatBuffers (https://flatbuffers.dev/internals/), as
// Arrow's Message.fbs and Schema.fbs describe them. A buffer is built from its
// end to its begin: what a table refers to is there before the table is, and
// all that is known of a place is how far it is from the end.

namespace penstock {
namespace {

constexpr std::size_t kAlign = 64;

std::size_t padding_to(std::size_t align, std::size_t size) {
  return (align - size % align) % align;
}

class FlatBuilder {
 public:
  /// A place, as its distance from the end of the buffer.
  using Place = std::uint32_t;

  /// `slot` is the field's number in the .fbs file, from 0, in which a union
  /// takes two: its type and then its value. A field that is not written has
  /// its default.
  struct TableField {
    std::uint16_t slot;
    std::uint8_t bytes;  // 0: a reference
    std::int64_t value;  // of a reference the place
  };

  // By increasing address: the vtable (its size, the table's size, then of each
  // slot the distance from the table's begin, 0 for absent, all uint16), the
  // table (the int32 distance back to the vtable), and its fields. Written from
  // the end, the fields come first.
  Place table(std::initializer_list<TableField> fields) {
    std::vector<std::uint16_t> places;  // by slot: from the end
    for (const TableField& field : fields) {
      if (field.bytes == 0)
        refer(static_cast<Place>(field.value));
      else
        number(field.value, field.bytes);
      if (places.size() <= field.slot) places.resize(field.slot + 1U, 0);
      places[field.slot] = static_cast<std::uint16_t>(bytes_.size());
    }
    const std::size_t end = bytes_.size();
    number(0, 4);  // where its vtable is: below
    const Place at = here();
    std::size_t first = end;
    for (const TableField& field : fields)
      first = std::min<std::size_t>(
          first, places[field.slot] - (field.bytes == 0 ? 4U : field.bytes));
    for (auto place = places.rbegin(); place != places.rend(); ++place)
      number(*place == 0 ? 0 : at - *place, 2);
    number(static_cast<std::int64_t>(at - first), 2);
    number(static_cast<std::int64_t>(2 * (places.size() + 2)), 2);
    const std::int32_t back = static_cast<std::int32_t>(here() - at);
    std::memcpy(bytes_.data() + bytes_.size() - at, &back, sizeof(back));
    return at;
  }
  Place text(const std::string& characters) {
    const std::size_t size = characters.size() + 1;
    pad(4, size);
    put(characters.data(), size);  // with its '\0'
    number(static_cast<std::int64_t>(characters.size()), 4);
    return here();
  }
  Place references(const std::vector<Place>& places) {
    for (auto place = places.rbegin(); place != places.rend(); ++place)
      refer(*place);
    number(std::ssize(places), 4);
    return here();
  }
  /// Structs of two numbers of 64 bits.
  Place pairs(const std::vector<std::pair<std::int64_t, std::int64_t>>& all) {
    for (auto pair = all.rbegin(); pair != all.rend(); ++pair) {
      number(pair->second, 8);
      number(pair->first, 8);
    }
    number(std::ssize(all), 4);
    return here();
  }
  std::string finish(Place root) {
    pad(8, 4);
    refer(root);
    return std::move(bytes_);
  }

 private:
  Place here() const { return static_cast<Place>(bytes_.size()); }
  void put(const void* from, std::size_t size) {
    bytes_.insert(0, static_cast<const char*>(from), size);
  }
  /// So that what follows, `size` bytes, begins at a multiple of `align`.
  void pad(std::size_t align, std::size_t size) {
    bytes_.insert(0, padding_to(align, bytes_.size() + size), '\0');
  }
  void number(std::int64_t value, std::size_t size) {
    pad(size, size);
    put(&value, size);  // little-endian, as the format is
  }
  void refer(Place to) {
    pad(4, 4);
    number(static_cast<std::int64_t>(here() + 4 - to), 4);
  }
  std::string bytes_;
};

/// A table Message around a header: its type in the union MessageHeader.
std::string message(FlatBuilder& builder, std::uint8_t type,
                    FlatBuilder::Place header, std::int64_t body) {
  constexpr std::int64_t kVersion5 = 4;
  return builder.finish(builder.table(
      {{3, 8, body}, {2, 0, header}, {0, 2, kVersion5}, {1, 1, type}}));
}

// Slots, of Schema.fbs: Int {bitWidth 0, is_signed 1}; Field {name 0, nullable
// 1, type's type 2, type 3, dictionary 4, children 5}; Schema {endianness 0,
// fields 1}.
std::string schema_message(const std::string& column) {
  constexpr std::uint8_t kInt = 2, kList = 12, kSchema = 1;  // of unions
  FlatBuilder builder;
  const auto int32 = builder.table({{0, 4, 32}, {1, 1, 1}});
  const auto none = builder.references({});
  const auto item_name = builder.text("item");
  const auto item = builder.table({{5, 0, none},
                                   {3, 0, int32},
                                   {0, 0, item_name},
                                   {2, 1, kInt},
                                   {1, 1, 1}});
  const auto list = builder.table({});
  const auto children = builder.references({item});
  const auto name = builder.text(column);
  const auto field = builder.table(
      {{5, 0, children}, {3, 0, list}, {0, 0, name}, {2, 1, kList}, {1, 1, 1}});
  const auto fields = builder.references({field});
  return message(builder, kSchema, builder.table({{1, 0, fields}, {0, 2, 0}}),
                 0);
}

}  // namespace

ArrowListStream::ArrowListStream(const std::filesystem::path& path,
                                 const std::string& column)
    : file_(path) {
  write_message(schema_message(column));
}

/// The body that follows begins at a multiple of kAlign.
void ArrowListStream::write_message(const std::string& metadata) {
  constexpr std::uint32_t kContinues = 0xFFFFFFFF;
  const std::size_t before = static_cast<std::size_t>(file_.bytes()) + 8;
  const std::size_t padding = padding_to(kAlign, before + metadata.size());
  file_.append_number(kContinues);
  file_.append_number(static_cast<std::int32_t>(metadata.size() + padding));
  file_.append(std::as_bytes(std::span(metadata)));
  file_.append_zeros(padding);
}

// RecordBatch of Message.fbs: {length 0, nodes 1, buffers 2}. A node is
// (length, null count), a buffer (offset in the body, length). Buffers of the
// body begin at multiples of 64 bytes, which Arrow recommends.
void ArrowListStream::write_batch() {
  constexpr std::uint8_t kRecordBatch = 3;
  const auto offsets = std::as_bytes(std::span(offsets_));
  const auto values = std::as_bytes(std::span(values_));
  const auto padded = [](std::size_t size) {
    return static_cast<std::int64_t>(size + padding_to(kAlign, size));
  };
  const std::int64_t rows = std::ssize(offsets_) - 1;
  const std::int64_t begin = padded(offsets.size());
  FlatBuilder builder;
  // Of each column, nested ones behind: what says which are valid (nothing:
  // all are), and what it holds.
  const auto buffers = builder.pairs({{0, 0},
                                      {0, std::ssize(offsets)},
                                      {begin, 0},
                                      {begin, std::ssize(values)}});
  const auto nodes = builder.pairs({{rows, 0}, {std::ssize(values_), 0}});
  const auto batch =
      builder.table({{0, 8, rows}, {1, 0, nodes}, {2, 0, buffers}});
  write_message(
      message(builder, kRecordBatch, batch, begin + padded(values.size())));
  for (const auto& bytes : {offsets, values}) {
    file_.append(bytes);
    file_.append_zeros(padding_to(kAlign, bytes.size()));
  }
  offsets_.resize(1);
  values_.clear();
}

void ArrowListStream::append(std::span<const std::int32_t> row) {
  values_.insert(values_.end(), row.begin(), row.end());
  offsets_.push_back(static_cast<std::int32_t>(values_.size()));
  if (offsets_.size() > kRows || values_.size() >= kElements) write_batch();
}

std::int64_t ArrowListStream::commit() {
  if (offsets_.size() > 1) write_batch();
  file_.append_number(std::uint64_t{0xFFFFFFFF});  // and a length of 0: the end
  return file_.commit();
}

}  // namespace penstock
