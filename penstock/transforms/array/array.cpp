#include "penstock/transforms/array/array.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "penstock/base/half.h"
#include "penstock/base/settings.h"
#include "penstock/base/with_number.h"
#include "penstock/transforms/array/json_numbers.h"
#include "penstock/transforms/kinds.h"

// Numbers are converted once, when they are parsed: what is hashed and stored
// are the bytes of the tensor.
namespace penstock {
namespace {

/// Whether NaN and infinities have an equal.
enum class Take : std::uint8_t { finite, any };

/// Whether a number is still what it was as a floating point number, `to`.
template <Take kTake, class From>
bool is_kept(From from, double to) {
  if constexpr (kTake == Take::any && std::is_floating_point_v<From>)
    return std::isfinite(to) || !std::isfinite(from);
  return std::isfinite(to);
}

/// True where the number has an equal of type To, which is written.
/// A real becomes an integer only if it is one that To holds. The bounds are
/// exact: max() may not be a double, but max() + 1, a power of two, is. For NaN
/// the first comparison is false.
template <Take kTake, class To, class From>
bool convert(From from, To& to) {
  if constexpr (std::is_floating_point_v<To>) {
    to = static_cast<To>(from) + To{0};  // -0.0 becomes 0.0
    return is_kept<kTake>(from, static_cast<double>(to));
  } else if constexpr (std::is_floating_point_v<From>) {
    // Both limits are powers of two, which float64 holds.
    constexpr double kEnd =
        2.0 * static_cast<double>(std::numeric_limits<To>::max() / 2 + 1);
    constexpr double kLeast = std::is_signed_v<To> ? -kEnd : 0;
    const auto number = static_cast<double>(from);
    if (!(number >= kLeast && number < kEnd) || number != std::trunc(number))
      return false;
    to = static_cast<To>(from);
    return true;
  } else {
    to = static_cast<To>(from);
    return std::in_range<To>(from);
  }
}

// A number of 16 bits, which is converted by way of float32.
struct Float16 {
  std::uint16_t bits = 0;
  float value() const { return from_float16(bits); }
  static Float16 of(float value) { return {to_float16(value)}; }
};
struct BFloat16 {
  std::uint16_t bits = 0;
  float value() const { return from_bfloat16(bits); }
  static BFloat16 of(float value) { return {to_bfloat16(value)}; }
};
template <class Number>
constexpr bool kIsHalf =
    std::is_same_v<Number, Float16> || std::is_same_v<Number, BFloat16>;

/// with_number(), of every dtype.
template <class Work>
auto with_any_number(Dtype dtype, Work work) {
  if (dtype == Dtype::float16) return work(Typed<Float16>());
  if (dtype == Dtype::bfloat16) return work(Typed<BFloat16>());
  return with_number(dtype, work);
}

template <Take kTake, class To, class From>
bool convert_any(From from, To& to) {
  if constexpr (kIsHalf<From>) {
    return convert_any<kTake>(from.value(), to);
  } else if constexpr (kIsHalf<To>) {
    to = To::of(static_cast<float>(from) + 0.0F);
    return is_kept<kTake>(from, static_cast<double>(to.value()));
  } else {
    return convert<kTake>(from, to);
  }
}

template <Take kTake, class To, class From>
bool convert_at(const std::byte* from, std::size_t at, std::byte* to) {
  From given{};
  To number{};
  std::memcpy(&given, from + at * sizeof(given), sizeof(given));
  const bool fits = convert_any<kTake>(given, number);
  std::memcpy(to + at * sizeof(number), &number, sizeof(number));
  return fits;
}

/// Appends `count` numbers as `To`; the first that does not fit, or `count`.
template <class To, Take kTake = Take::finite>
std::int64_t append(const ListedNumbers& numbers, Bytes& out) {
  return with_any_number(numbers.dtype, [&]<class From>(Typed<From>) {
    const auto count = static_cast<std::size_t>(numbers.count);
    const std::size_t begin = out.size();
    out.resize(begin + count * sizeof(To));
    std::byte* const to = out.mutable_data<std::byte>() + begin;
    const std::byte* const from = numbers.bytes.data();
    // All of them without a branch, many at once, and then whether.
    unsigned misfits = 0;
    for (std::size_t at = 0; at < count; ++at)
      misfits |= convert_at<kTake, To, From>(from, at, to) ? 0U : 1U;
    if (misfits == 0) return numbers.count;
    std::size_t first = 0;
    while (convert_at<kTake, To, From>(from, first, to)) ++first;
    return static_cast<std::int64_t>(first);
  });
}

std::string shown(const ListedNumbers& numbers, std::int64_t at) {
  return with_any_number(numbers.dtype, [&]<class From>(Typed<From>) {
    From number{};
    std::memcpy(
        &number,
        numbers.bytes.data() + static_cast<std::size_t>(at) * sizeof(number),
        sizeof(number));
    double value = 0;
    if constexpr (kIsHalf<From>)
      value = static_cast<double>(number.value());
    else
      value = static_cast<double>(number);
    if (!std::isfinite(value))
      return std::string(std::isnan(value) ? "NaN" : "an infinity");
    return Json(value).dump();
  });
}

/// The tensor of rows of equal length, and their mask where there is one.
RowLayout layout_of(const std::string& name, const Arrays& array) {
  std::vector<TensorSpec> tensors = {
      {.name = name, .dtype = array.dtype, .row_shape = array.row_shape()}};
  if (array.missing.masked())
    tensors.push_back({.name = name + "_mask", .row_shape = {}});
  RowLayout layout;
  layout.append(std::move(tensors));
  return layout;
}

/// What stands in the place of each number of a row that is NULL; empty: it
/// does not fit the dtype.
Bytes fill_of(const Arrays& array) {
  const double number = array.missing.value();
  const ListedNumbers one{.dtype = Dtype::float64,
                          .bytes = std::as_bytes(std::span(&number, 1)),
                          .count = 1};
  Bytes fill;
  const std::int64_t fit = with_any_number(
      array.dtype, [&]<class To>(Typed<To>) { return append<To>(one, fill); });
  const bool real =
      array.dtype == Dtype::float32 || array.dtype == Dtype::float64 ||
      array.dtype == Dtype::float16 || array.dtype == Dtype::bfloat16;
  if (fit == 0 && !(real && std::isnan(number))) return {};
  return fill;
}

class Parser final : public FieldParser {
 public:
  Parser(Arrays array, std::size_t column)
      : array_(std::move(array)),
        each_(elements_of(array_.row_shape())),
        layout_(layout_of({}, array_)),
        fill_(fill_of(array_)),
        column_(column) {}

  void parse(const Block& block, Values& out, Faults& faults) override {
    const Column& column = block.columns[column_];
    const bool equal = array_.lengths == Lengths::equal;
    const std::size_t width = equal ? layout_.row_bytes : 0;
    out.width = width;
    for (std::int64_t row = 0; row < block.rows; ++row) {
      const std::size_t begin = out.bytes.size();
      std::string why = append_row(column, row, out.bytes);
      if (!why.empty()) {
        faults.reject(
            {.row = row, .place = array_.column, .why = std::move(why)});
        out.bytes.resize(begin);  // of what does not matter
        out.bytes.resize(begin + width);
      } else if (array_.missing.masked()) {
        append_mask(column.valid(row), begin, out.bytes);
      }
      if (!equal) out.end_row();
    }
  }

 private:
  std::string expected() const {
    if (array_.lengths == Lengths::equal)
      return std::to_string(each_) + (each_ == 1 ? " number" : " numbers");
    if (each_ == 1) return "a list of numbers";
    return "a multiple of " + std::to_string(each_) + " numbers";
  }

  /// What is wrong with the row; empty: nothing.
  std::string append_row(const Column& column, std::int64_t row, Bytes& out) {
    if (!column.valid(row)) {
      if (array_.missing.bad())
        return "is NULL, expected " + expected() +
               "; \"missing\" sets a replacement, as in {\"array\": "
               "{\"column\": " +
               Json(array_.column).dump() + ", \"missing\": " +
               (array_.lengths == Lengths::equal ? "\"zero\"" : "\"empty\"") +
               "}}";
      if (array_.missing.by != MissingValue::By::empty)
        for (std::int64_t i = 0; i < each_; ++i)
          out.append(fill_.data(), fill_.size());
      return {};
    }
    std::string why;
    const std::optional<ListedNumbers> found = numbers_in(column, row, why);
    if (!why.empty()) return why + ", expected " + expected();
    if (!found)
      return "holds " + std::string(name_of(column.type)) + ", expected " +
             expected();
    const auto width = static_cast<std::int64_t>(size_of(found->dtype));
    if (std::ssize(found->bytes) != found->count * width)
      return "holds " + std::to_string(found->bytes.size()) +
             " bytes, expected a multiple of " + std::to_string(width);
    const bool fits = array_.lengths == Lengths::equal
                          ? found->count == each_
                          : found->count % each_ == 0;
    if (!fits)
      return "holds " + std::to_string(found->count) + " numbers, expected " +
             expected() +
             (array_.lengths == Lengths::equal && each_ == 1
                  ? "; use \"lengths\": \"padded\" for rows of any length, or "
                    "\"shape\" for rows of a fixed one"
                  : "");
    if (column.type.kind == ColumnKind::list)
      for (std::int64_t i = 0; i < found->count; ++i)
        if (!column.children[0].valid(column.offset(row) + i))
          return "number " + std::to_string(i) + " is NULL";
    const std::int64_t end =
        with_any_number(array_.dtype, [&]<class To>(Typed<To>) {
          return array_.finite ? append<To>(*found, out)
                               : append<To, Take::any>(*found, out);
        });
    if (end == found->count) return {};
    return "number " + std::to_string(end) + " is " + shown(*found, end) +
           ", expected a number that fits " +
           std::string(name_of(array_.dtype));
  }

  void append_mask(bool present, std::size_t begin, Bytes& out) const {
    while (out.size() < begin + layout_.tensors[1].offset)
      out.append_value(std::byte{0});
    out.append_value(present ? 1.0F : 0.0F);
  }

  std::optional<ListedNumbers> numbers_in(const Column& column,
                                          std::int64_t row, std::string& why) {
    const ColumnKind kind = column.type.kind;
    if (kind == ColumnKind::dictionary)
      return numbers_in(column.children[0], column.as_int64(row), why);
    if (kind != ColumnKind::binary && kind != ColumnKind::utf8)
      return listed_numbers(column, row);
    if (!array_.of) {
      why = texts_.read(column.text(row));
      return texts_.numbers();
    }
    const std::string_view bytes = column.text(row);
    return ListedNumbers{
        .dtype = *array_.of,
        .bytes = std::as_bytes(std::span(bytes)),
        .count = static_cast<std::int64_t>(bytes.size() / size_of(*array_.of))};
  }

  const Arrays array_;
  const std::int64_t each_;  // elements of a row, or of an element
  const RowLayout layout_;   // of rows of equal length
  const Bytes fill_;         // of each number of a row that is NULL
  const std::size_t column_;
  JsonNumbers texts_;
};

class BoundArray final : public BoundField {
 public:
  BoundArray(Arrays array, std::size_t column)
      : array_(std::move(array)), column_(column) {}
  std::unique_ptr<FieldParser> parser() const override {
    return std::make_unique<Parser>(array_, column_);
  }

 private:
  const Arrays array_;
  const std::size_t column_;
};

std::vector<Output> outputs_of(const std::string& name, const Arrays& array) {
  std::vector<Output> all = {{.name = name,
                              .dtype = array.dtype,
                              .row_shape = array.row_shape(),
                              .lengths = array.lengths}};
  if (array.ragged == Arrays::Ragged::offsets)
    all[0].beside = name + "_offsets";
  if (array.ragged == Arrays::Ragged::pad)
    all.push_back({.name = name + "_mask",
                   .dtype = Dtype::boolean,
                   .row_shape = {},
                   .lengths = Lengths::padded,
                   .shares = true});
  if (array.missing.masked())
    all.push_back({.name = name + "_mask", .row_shape = {}});
  return all;
}

FieldFacts facts_of(const std::string& name, const Arrays& array) {
  const std::int64_t each = elements_of(array.row_shape());
  StoredForm stored;
  if (array.lengths == Lengths::equal)
    stored.tensors = layout_of(name, array).tensors;
  else
    stored.element_bytes =
        static_cast<std::size_t>(each) * size_of(array.dtype);
  Arrays unchanged = array;
  unchanged.augment.clear();
  return {.columns = {{.column = array.column,
                       .as = ReadAs::value,
                       .setting = "fields." + name + ".array.column",
                       .window = array.window,
                       .stride = array.stride}},
          .stored = std::move(stored),
          .column_elements =
              array.of ? each * static_cast<std::int64_t>(size_of(*array.of))
                       : each,
          .outputs = outputs_of(name, array),
          .recipe = array_settings().shown(array),
          .stored_recipe = array_settings().shown(unchanged),
          .built_in = true};
}

class ArrayKind final : public FieldKind {
 public:
  ArrayKind(std::string name, Arrays array)
      : FieldKind(facts_of(name, array)),
        name_(std::move(name)),
        array_(std::move(array)) {}

  std::unique_ptr<FieldFinisher> finisher(bool train) const override {
    return make_array_finisher(array_, train);
  }
  std::shared_ptr<const BoundField> bind(FieldColumns columns) const override {
    const ColumnKind kind = columns.types[0].kind;
    const bool bytes = kind == ColumnKind::binary;
    const bool lists = kind == ColumnKind::list || kind == ColumnKind::fixed;
    if (lists) check_shape(columns.info[0]);
    check_fill();
    if (lists && !array_.of)
      return std::make_shared<BoundArray>(array_, columns.at[0]);
    const bool texts =
        kind == ColumnKind::utf8 || kind == ColumnKind::dictionary;
    if (texts || (bytes && array_.of))
      return std::make_shared<BoundArray>(array_, columns.at[0]);
    const ColumnInfo& info = columns.info[0];
    throw Error(
        ErrorKind::request,
        {.code = "fields.array",
         .what = "cannot use the settings",
         .where = "fields." + name_ + ".array",
         .why = "column '" + info.name + "' (" + info.declared + ") holds " +
                (lists   ? "numbers, which already have a type"
                 : bytes ? "bytes"
                         : std::string(name_of(columns.types[0])) +
                               ", not lists of numbers"),
         .next = lists ? "leave \"of\" out"
                 : bytes
                     ? "set the type of the numbers in the bytes: \"of\": "
                       "\"float32\""
                     : "name a column of lists, of tensors, of texts such as "
                       "[1, 2.5] or of bytes; "
                       "for single numbers use \"columns\""});
  }

 private:
  /// What the source says beforehand is wrong with each row.
  void check_shape(const ColumnInfo& info) const {
    const bool equal = array_.lengths == Lengths::equal;
    if (info.item.empty() || !equal ||
        elements_of(info.item) == elements_of(array_.row_shape()))
      return;
    const Shape shape(info.item.begin() + (array_.window > 0 ? 1 : 0),
                      info.item.end());
    throw Error(
        ErrorKind::request,
        {.code = "fields.array",
         .what = "cannot use the settings",
         .where = "fields." + name_ + ".array",
         .why = "each row of column '" + info.name + "' (" + info.declared +
                ") is " + text_of(info.item) +
                (array_.window > 0 ? " with its window" : "") +
                ", but these settings need " + text_of(array_.row_shape()),
         .next = "write \"shape\": " + text_of(shape)});
  }

  void check_fill() const {
    if (fill_of(array_).size() > 0) return;
    throw Error(ErrorKind::request,
                {.code = "fields.array",
                 .what = "cannot use the settings",
                 .where = "fields." + name_ + ".array.missing",
                 .why = "found " + shown_missing(array_.missing).dump() +
                        ", which does not fit dtype " +
                        std::string(name_of(array_.dtype)),
                 .next = "use \"zero\", \"mask\" or a number that fits"});
  }

  const std::string name_;
  const Arrays array_;
};

}  // namespace

std::shared_ptr<const FieldKind> make_array(std::string name, Arrays array) {
  return std::make_shared<ArrayKind>(std::move(name), std::move(array));
}

FieldDescriptor array_field() {
  return describe_field<Arrays, array_settings, make_array>("array");
}

}  // namespace penstock
