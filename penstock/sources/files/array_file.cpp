#include "penstock/sources/files/array_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/half.h"
#include "penstock/base/utf8.h"
#include "penstock/sources/files/column_lengths.h"
#include "penstock/sources/files/windows.h"

namespace penstock::files {
namespace {

// What is lent costs nothing, so chunks of it only divide the work; what is
// copied is copied again for each row that is read by itself.
constexpr std::size_t kLentBytes = std::size_t{8} << 20;
constexpr std::size_t kCopiedBytes = std::size_t{256} << 10;

constexpr const char* kWriteAgain =
    "write it as an array of numbers, booleans or texts";

/// Why an array makes no column; empty: it makes one. Rows without bytes could
/// be any number, which nothing in the file bounds.
std::string why_unread(const ArrayInfo& info) {
  if (info.items == ArrayItems::unread) return info.why;
  if (info.items == ArrayItems::texts || info.rows() == 0 ||
      info.row_bytes() > 0)
    return {};
  return "the " + std::to_string(info.rows()) + " rows hold no values (" +
         info.declared + ")";
}

/// An array of one dimension: a column of single values.
bool is_flat(const ArrayInfo& info) {
  const bool text =
      info.items == ArrayItems::bytes || info.items == ArrayItems::letters;
  return info.shape.size() == (text ? 2 : 1);
}

FileColumn column_of(const ArrayInfo& info) {
  FileColumn column{.name = info.name,
                    .declared = info.declared,
                    .type = ColumnType::tensor(info.dtype)};
  switch (info.items) {
    case ArrayItems::numbers:
      // A tensor of one number keeps the two bytes of a half.
      if (is_flat(info) && !is_half(info.dtype))
        column.type = ColumnType::number(info.dtype);
      else
        column.item = info.item();
      break;
    case ArrayItems::booleans:
      if (is_flat(info))
        column.type = ColumnType::boolean;
      else
        column.item = info.item();
      break;
    case ArrayItems::bytes:
    case ArrayItems::letters:
      column.type = is_flat(info) ? ColumnType::text : ColumnType::binary;
      break;
    case ArrayItems::texts:
      column.type = ColumnType::text;
      break;
    case ArrayItems::unread:
      column.type = ColumnType::binary;
      break;
  }
  return column;
}

/// What is no character becomes bytes that are not UTF-8. UTF-8 as RFC 3629 has
/// it, section 3. Surrogates become three bytes that are not UTF-8 either, so
/// the check afterwards refuses both.
void append_letter(std::uint32_t letter, std::string& text) {
  auto add = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  auto rest = [&](int bits) { add(0x80U | ((letter >> bits) & 0x3FU)); };
  if (letter < 0x80) return add(letter);
  if (letter < 0x800) {
    add(0xC0U | letter >> 6);
  } else if (letter < 0x10000) {
    add(0xE0U | letter >> 12);
    rest(6);
  } else {
    add(letter > 0x10FFFF ? 0xFFU : 0xF0U | letter >> 18);
    rest(12);
    rest(6);
  }
  rest(0);
}

/// The text in a row of bytes that zeros fill up.
void append_letters(std::span<const std::byte> row, ArrayItems items,
                    Column& to) {
  std::string text;
  if (items == ArrayItems::bytes) {
    text.assign(reinterpret_cast<const char*>(row.data()), row.size());
    while (text.ends_with('\0')) text.pop_back();
  } else {
    std::vector<std::uint32_t> letters(row.size() / 4);
    std::memcpy(letters.data(), row.data(), letters.size() * 4);
    while (!letters.empty() && letters.back() == 0) letters.pop_back();
    for (std::uint32_t letter : letters) append_letter(letter, text);
  }
  if (is_utf8(text)) return to.append_text(text);
  to.append_null();
}

/// The rows of one column: of the array, or windows of it.
struct ArrayRows {
  std::shared_ptr<const RowArray> array;
  Windows windows = {};

  const ArrayInfo& info() const { return array->info(); }
  std::int64_t count() const { return windows.count(info().rows()); }
  Shape item() const {
    Shape item = info().item();
    if (windows) item.insert(item.begin(), windows.length);
    return item;
  }
  std::size_t bytes() const {
    return info().row_bytes() *
           static_cast<std::size_t>(std::max<std::int64_t>(1, windows.length));
  }
  /// Rows that are read together.
  std::int64_t together() const {
    if (info().chunk_rows > 0)
      return windows.together(info().chunk_rows, info().row_bytes());
    const bool lent = info().lent && windows.consecutive();
    return std::max<std::int64_t>(
        1, static_cast<std::int64_t>((lent ? kLentBytes : kCopiedBytes) /
                                     std::max<std::size_t>(1, bytes())));
  }
};

/// Brings rows of an array into a column.
class ColumnReader {
 public:
  explicit ColumnReader(ArrayRows rows)
      : rows_(std::move(rows)), reader_(rows_.array->open()) {}

  /// Rows that are bad are null, with a problem of column `at`.
  Column read(std::int64_t begin, std::int64_t end, std::size_t at,
              std::vector<RowProblem>& problems) {
    std::vector<BadRows> bad;
    Column column =
        rows_.windows ? windows(begin, end, bad) : plain(begin, end, bad);
    mark_bad(bad, at, column, problems);
    return column;
  }

 private:
  Column plain(std::int64_t begin, std::int64_t end,
               std::vector<BadRows>& bad) {
    const ArrayInfo& info = rows_.info();
    Column column{.type = column_of(info).type};
    if (info.items == ArrayItems::texts) {
      reader_->texts(begin, end, column, bad);
      return column;
    }
    Bytes bytes = reader_->rows(begin, end, bad);
    if (info.items == ArrayItems::bytes || info.items == ArrayItems::letters) {
      const std::size_t width = info.row_bytes();
      for (std::size_t at = 0; at + width <= bytes.size() && width > 0;
           at += width)
        append_letters(bytes.span().subspan(at, width), info.items, column);
      while (column.length < end - begin) column.append_text("");
      return column;
    }
    if (column.type == ColumnType::boolean) {
      for (std::byte value : bytes.span())
        column.append_boolean(value != std::byte{0});
      return column;
    }
    if (column.type.kind == ColumnKind::fixed) column.item = info.item();
    column.length = end - begin;
    column.values = aligned(std::move(bytes));
    return column;
  }

  Column windows(std::int64_t begin, std::int64_t end,
                 std::vector<BadRows>& bad) {
    const ArrayInfo& info = rows_.info();
    Column column{.type = ColumnType::tensor(info.dtype)};
    column.item = rows_.item();
    column.length = end - begin;
    const Windows& of = rows_.windows;
    std::vector<BadRows> elements;
    column.values =
        aligned(of.cut(reader_->rows(of.begin(begin), of.end(end), elements),
                       info.row_bytes(), column.length));
    bad = bad_windows(std::move(elements), of, column.length);
    return column;
  }

  /// Members of archives begin anywhere.
  Bytes aligned(Bytes bytes) const {
    const auto at = reinterpret_cast<std::uintptr_t>(bytes.data());
    if (at % size_of(rows_.info().dtype) == 0) return bytes;
    Bytes copy;
    copy.append(bytes.data(), bytes.size());
    return copy;
  }

  ArrayRows rows_;
  std::unique_ptr<ArrayReader> reader_;
};

class ArrayChunks final : public ChunkReader {
 public:
  ArrayChunks(const std::vector<ArrayRows>& columns, std::int64_t rows,
              std::int64_t together)
      : rows_(rows), together_(together) {
    for (const ArrayRows& column : columns) readers_.emplace_back(column);
  }

  void read(std::int64_t chunk, const PieceSink& sink) override {
    const std::int64_t begin = chunk * together_;
    const std::int64_t end = std::min(rows_, begin + together_);
    Block block;
    block.rows = end - begin;
    for (ColumnReader& reader : readers_)
      block.columns.push_back(
          reader.read(begin, end, block.columns.size(), block.problems));
    sink(std::move(block));
  }

 private:
  const std::int64_t rows_, together_;
  std::vector<ColumnReader> readers_;
};

// Invariants: `rows_of_` is empty, or has an entry for each array, which is set
// for the columns that a source reads; chunks then all have `together_` rows,
// but for the last one, and so chunk i begins at row i * together_ of the file.
//
// An instance is immutable once it is shared: for_columns() changes a copy.
class ArrayFile final : public RowFile {
 public:
  ArrayFile(std::string place,
            std::vector<std::shared_ptr<const RowArray>> arrays)
      : place_(std::move(place)), arrays_(std::move(arrays)) {
    for (const auto& array : arrays_)
      facts_.columns.push_back(column_of(array->info()));
    facts_.left_out = left_out();
  }

  std::shared_ptr<const RowFile> for_columns(
      const std::vector<ReadColumn>& columns) const override {
    auto file = std::make_shared<ArrayFile>(*this);
    file->rows_of_.assign(arrays_.size(), {});
    for (const ReadColumn& column : columns) {
      ArrayRows& rows = file->rows_of_[column.column];
      if (rows.array != nullptr && rows.windows.length != column.window)
        refuse_condition(rows.info());
      rows = checked(column);
      if (column.window == 0) continue;
      FileColumn& seen = file->facts_.columns[column.column];
      seen.type = ColumnType::tensor(rows.info().dtype);
      seen.item = rows.item();
    }
    file->count_rows(columns);
    return file;
  }

  std::unique_ptr<ChunkReader> open(
      const std::vector<std::size_t>& columns) const override {
    std::vector<ArrayRows> rows;
    for (std::size_t column : columns)
      rows.push_back(rows_of_.empty() || rows_of_[column].array == nullptr
                         ? ArrayRows{.array = arrays_[column]}
                         : rows_of_[column]);
    return std::make_unique<ArrayChunks>(rows, RowFile::rows(), together_);
  }

 private:
  std::vector<LeftOutColumn> left_out() const {
    const ArrayInfo* largest = this->largest();
    std::vector<ColumnLength> lengths;
    for (const auto& array : arrays_)
      if (const ArrayInfo& info = array->info(); why_unread(info).empty())
        lengths.push_back({info.name, info.rows()});
    const LengthGroups groups(lengths);
    std::vector<LeftOutColumn> all;
    for (const auto& array : arrays_) {
      const ArrayInfo& info = array->info();
      if (std::string why = why_unread(info); !why.empty())
        all.push_back({info.name, std::move(why), kWriteAgain});
      else if (info.rows() != largest->rows())
        all.push_back(
            {info.name,
             groups.why_left_out({info.name, info.rows()}, largest->rows()),
             kNameOneLength});
    }
    return all;
  }

  /// The readable array of most bytes; null where none is readable.
  const ArrayInfo* largest() const {
    const ArrayInfo* largest = nullptr;
    auto bytes = [](const ArrayInfo& info) {
      return info.row_bytes() * static_cast<std::size_t>(info.rows());
    };
    for (const auto& array : arrays_)
      if (const ArrayInfo& info = array->info();
          why_unread(info).empty() &&
          (largest == nullptr || bytes(info) > bytes(*largest)))
        largest = &info;
    return largest;
  }

  ArrayRows checked(const ReadColumn& column) const {
    const auto& array = arrays_[column.column];
    const ArrayInfo& info = array->info();
    if (std::string why = why_unread(info); !why.empty())
      refuse_array(place_, info.name, std::move(why));
    ArrayRows rows{.array = array};
    if (column.window == 0) return rows;
    if (info.items != ArrayItems::numbers)
      refuse_array(place_, info.name, "windows are made of numbers");
    rows.windows = {column.window, column.stride};
    return rows;
  }

  [[noreturn]] void refuse_condition(const ArrayInfo& info) const {
    throw Error(ErrorKind::request,
                {.code = "source.window",
                 .what = "cannot use the condition",
                 .where = "source.where",
                 .why = "column '" + info.name +
                        "' is read as windows, which cannot be compared",
                 .next = "compare another column"});
  }

  void count_rows(const std::vector<ReadColumn>& columns) {
    const ArrayRows* first = nullptr;
    std::vector<ColumnLength> lengths;
    for (const ReadColumn& column : columns) {
      const ArrayRows& rows = rows_of_[column.column];
      if (first == nullptr) first = &rows;
      lengths.push_back(
          {rows.info().name, rows.count(), static_cast<bool>(rows.windows)});
      const bool wider =
          together_ == 0 || rows.together() < together_ ||
          (rows.info().chunk_rows > 0 && first->info().chunk_rows == 0);
      if (wider) together_ = rows.together();
    }
    check_lengths(lengths);
    std::int64_t count = 0;
    if (first != nullptr)
      count = first->count();
    else if (const ArrayInfo* largest = this->largest())
      count = largest->rows();
    together_ = std::max<std::int64_t>(1, together_);
    facts_.chunk_ends.clear();
    for (std::int64_t end = 0; end < count;)
      facts_.chunk_ends.push_back(end = std::min(count, end + together_));
  }

  void check_lengths(const std::vector<ColumnLength>& lengths) const {
    if (const LengthGroups groups(lengths); !groups.agree())
      throw Error(ErrorKind::source,
                  {.code = "arrays.lengths",
                   .what = "cannot read these arrays side by side",
                   .where = place_,
                   .why = groups.shown(),
                   .next = "name arrays whose first dimension is the same, "
                           "or read windows of both"});
  }

  std::string place_;
  std::vector<std::shared_ptr<const RowArray>> arrays_;
  std::vector<ArrayRows> rows_of_;  // by column; empty: not yet known
  std::int64_t together_ = 0;
};

class EmptyFile final : public RowFile {
 public:
  explicit EmptyFile(std::vector<FileColumn> columns) {
    facts_.columns = std::move(columns);
  }
  std::unique_ptr<ChunkReader> open(
      const std::vector<std::size_t>&) const override {
    return nullptr;  // it has no chunk to be read
  }
};

}  // namespace

std::shared_ptr<const RowFile> make_array_file(
    std::string place, std::vector<std::shared_ptr<const RowArray>> arrays) {
  return std::make_shared<ArrayFile>(std::move(place), std::move(arrays));
}

std::shared_ptr<const RowFile> make_empty_file(const RowFile& like) {
  return std::make_shared<EmptyFile>(like.facts().columns);
}

void refuse_array(const std::string& place, const std::string& name,
                  std::string why) {
  throw Error(ErrorKind::source, {.code = "arrays.type",
                                  .what = "cannot read array '" + name + "'",
                                  .where = place,
                                  .why = std::move(why),
                                  .next = kWriteAgain});
}

}  // namespace penstock::files
