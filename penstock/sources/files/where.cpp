#include "penstock/sources/files/where.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

// A condition is evaluated over runs of rows, node by node, so that the kind of
// a column is looked at once per run.

namespace penstock::files {
namespace {

using Kind = Condition::Kind;
using Order = Condition::Order;

// SQL's three values.
constexpr std::uint8_t kFalse = 0, kTrue = 1, kNull = 2;
constexpr std::int64_t kRun = 1024;

struct Rows {
  const Block& block;
  std::size_t first;  // column of the block that is column 0 here
  std::int64_t begin;
  std::int64_t count;

  const Column& column(const Condition& node) const {
    return block.columns[first + node.column];
  }
};

using Truth = std::array<std::uint8_t, kRun>;

template <class Number>
void numbers_of(const Column& column, const Rows& rows, long double* out,
                std::uint8_t* null) {
  for (std::int64_t i = 0; i < rows.count; ++i) {
    auto value = column.number<Number>(rows.begin + i);
    out[i] = static_cast<long double>(value);
    bool lacks = !column.valid(rows.begin + i);
    if constexpr (std::is_floating_point_v<Number>)
      lacks = lacks || std::isnan(value);
    null[i] = lacks;
  }
}

/// Operands of a comparison over a run of rows. long double has at least 64
/// bits of mantissa on Linux on x86-64 and AArch64, so it holds every int64 and
/// uint64 exactly; with double, 2^53 + 1 would equal 2^53.
struct Numbers {
  std::array<long double, kRun> values;
  std::array<std::uint8_t, kRun> null;

  void fill(const Condition& node, const Rows& rows) {
    if (node.kind != Kind::column) {
      std::fill_n(values.begin(), rows.count, node.number);
      std::fill_n(null.begin(), rows.count,
                  std::uint8_t{node.kind == Kind::null});
      return;
    }
    const Column& column = rows.column(node);
    if (column.type.kind == ColumnKind::null) return null.fill(1);
    if (column.type.kind == ColumnKind::boolean) {
      for (std::int64_t i = 0; i < rows.count; ++i) {
        auto at = static_cast<std::size_t>(i);
        null[at] = !column.valid(rows.begin + i);
        values[at] = column.boolean(rows.begin + i);
      }
      return;
    }
    long double* out = values.data();
    switch (column.type.dtype) {
      case Dtype::float32:
        return numbers_of<float>(column, rows, out, null.data());
      case Dtype::int64:
        return numbers_of<std::int64_t>(column, rows, out, null.data());
      case Dtype::int32:
        return numbers_of<std::int32_t>(column, rows, out, null.data());
      case Dtype::int16:
        return numbers_of<std::int16_t>(column, rows, out, null.data());
      case Dtype::int8:
        return numbers_of<std::int8_t>(column, rows, out, null.data());
      case Dtype::uint64:
        return numbers_of<std::uint64_t>(column, rows, out, null.data());
      case Dtype::uint32:
        return numbers_of<std::uint32_t>(column, rows, out, null.data());
      case Dtype::uint16:
        return numbers_of<std::uint16_t>(column, rows, out, null.data());
      case Dtype::uint8:
        return numbers_of<std::uint8_t>(column, rows, out, null.data());
      default:
        return numbers_of<double>(column, rows, out, null.data());
    }
  }
};

template <class Value>
bool holds(Order order, const Value& a, const Value& b) {
  switch (order) {
    case Order::equal:
      return a == b;
    case Order::other:
      return a != b;
    case Order::less:
      return a < b;
    case Order::most:
      return a <= b;
    case Order::more:
      return a > b;
    case Order::least:
      return a >= b;
  }
  return false;
}

bool is_textual(const Condition& node, const Rows& rows) {
  return node.kind == Kind::text ||
         (node.kind == Kind::column && rows.column(node).type.is_text());
}

/// A text or NULL of a row.
std::optional<std::string_view> text_at(const Condition& node, const Rows& rows,
                                        std::int64_t i) {
  if (node.kind == Kind::text) return node.text;
  if (node.kind != Kind::column) return std::nullopt;
  const Column& column = rows.column(node);
  if (!column.type.is_text() || !column.valid(rows.begin + i))
    return std::nullopt;
  return column.text(rows.begin + i);
}

void compare(Order order, const Condition& left, const Condition& right,
             const Rows& rows, Truth& out) {
  if (is_textual(left, rows) || is_textual(right, rows)) {
    for (std::int64_t i = 0; i < rows.count; ++i) {
      auto a = text_at(left, rows, i), b = text_at(right, rows, i);
      out[static_cast<std::size_t>(i)] =
          !a || !b ? kNull : static_cast<std::uint8_t>(holds(order, *a, *b));
    }
    return;
  }
  // Too large for the stack of a thread that nests conditions.
  auto a = std::make_unique<Numbers>(), b = std::make_unique<Numbers>();
  a->fill(left, rows);
  b->fill(right, rows);
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows.count); ++i)
    out[i] = (a->null[i] | b->null[i]) != 0
                 ? kNull
                 : static_cast<std::uint8_t>(
                       holds(order, a->values[i], b->values[i]));
}

// SQL's logic (ISO/IEC 9075-2, "boolean value expression"): NULL is "unknown",
// which FALSE overrules in AND and TRUE in OR. A row is kept where the whole is
// TRUE; NOT of unknown stays unknown.
std::uint8_t and_of(std::uint8_t a, std::uint8_t b) {
  if (a == kFalse || b == kFalse) return kFalse;
  return a == kNull || b == kNull ? kNull : kTrue;
}
std::uint8_t not_of(std::uint8_t a) {
  return a == kNull ? kNull : static_cast<std::uint8_t>(1 - a);
}
std::uint8_t or_of(std::uint8_t a, std::uint8_t b) {
  return not_of(and_of(not_of(a), not_of(b)));
}

void evaluate(const Condition& node, const Rows& rows, Truth& out);

/// `out` and the truth of a part, by `combine`.
template <class Combine>
void combine_with(const Rows& rows, Truth& out, const Truth& more,
                  Combine combine) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows.count); ++i)
    out[i] = combine(out[i], more[i]);
}

void is_null(const Condition& node, const Rows& rows, Truth& out) {
  const Condition& of = node.parts[0];
  if (of.kind == Kind::column) {
    const Column& column = rows.column(of);
    const bool number = column.type.kind == ColumnKind::number;
    for (std::int64_t i = 0; i < rows.count; ++i) {
      bool null = !column.valid(rows.begin + i) ||
                  (number && std::isnan(column.as_float64(rows.begin + i)));
      out[static_cast<std::size_t>(i)] = null;
    }
  } else {
    out.fill(of.kind == Kind::null ? kTrue : kFalse);
  }
}

void like(const Condition& node, const Rows& rows, Truth& out) {
  for (std::int64_t i = 0; i < rows.count; ++i) {
    auto text = text_at(node.parts[0], rows, i);
    out[static_cast<std::size_t>(i)] =
        !text ? kNull
              : static_cast<std::uint8_t>(
                    is_like(*text, node.parts[1].text, node.escape));
  }
}

void evaluate(const Condition& node, const Rows& rows, Truth& out) {
  Truth part;
  switch (node.kind) {
    case Kind::both:
    case Kind::either:
      evaluate(node.parts[0], rows, out);
      for (std::size_t at = 1; at < node.parts.size(); ++at) {
        evaluate(node.parts[at], rows, part);
        combine_with(rows, out, part, node.kind == Kind::both ? and_of : or_of);
      }
      return;
    case Kind::no:
      evaluate(node.parts[0], rows, out);
      for (std::uint8_t& truth : out) truth = not_of(std::min(truth, kNull));
      return;
    case Kind::compare:
      return compare(node.order, node.parts[0], node.parts[1], rows, out);
    case Kind::between:
      compare(Order::least, node.parts[0], node.parts[1], rows, out);
      compare(Order::most, node.parts[0], node.parts[2], rows, part);
      combine_with(rows, out, part, and_of);
      break;
    case Kind::in:
      out.fill(kFalse);  // of an empty list, also for NULL
      for (std::size_t at = 1; at < node.parts.size(); ++at) {
        compare(Order::equal, node.parts[0], node.parts[at], rows, part);
        combine_with(rows, out, part, or_of);
      }
      break;
    case Kind::is_null:
      is_null(node, rows, out);
      break;
    case Kind::like:
      like(node, rows, out);
      break;
    case Kind::column:
    case Kind::number: {
      static const Condition zero{.kind = Kind::number};
      return compare(Order::other, node, zero, rows, out);
    }
    case Kind::text:
    case Kind::null:
      return out.fill(kNull);
  }
  if (node.negated)
    for (std::uint8_t& truth : out) truth = not_of(std::min(truth, kNull));
}

const ChunkBounds* bounds_of(const Condition& node,
                             const std::vector<ChunkBounds>& bounds) {
  if (node.kind != Kind::column || !bounds[node.column].known) return nullptr;
  return &bounds[node.column];
}

// Whether some number in [min, max] may stand in this relation to `value`. A
// wrong "no" would lose rows, a wrong "yes" costs the reading of a chunk; so
// all that is not understood is "yes".
bool may_hold(Order order, const ChunkBounds& of, long double value) {
  switch (order) {
    case Order::equal:
      return of.min <= value && value <= of.max;
    case Order::other:
      return of.min != value || of.max != value;
    case Order::less:
      return of.min < value;
    case Order::most:
      return of.min <= value;
    case Order::more:
      return of.max > value;
    case Order::least:
      return of.max >= value;
  }
  return true;
}

bool may_be_true(const Condition& node,
                 const std::vector<ChunkBounds>& bounds) {
  auto part_may = [&](const Condition& part) {
    return may_be_true(part, bounds);
  };
  if (node.kind == Kind::both) return std::ranges::all_of(node.parts, part_may);
  if (node.kind == Kind::either)
    return std::ranges::any_of(node.parts, part_may);
  if (node.negated || node.parts.empty()) return node.kind != Kind::null;
  const ChunkBounds* of = bounds_of(node.parts[0], bounds);
  if (of == nullptr) return true;
  auto number = [&](std::size_t part) {
    return node.parts[part].kind == Kind::number;
  };
  auto holds_at = [&](Order order, std::size_t part) {
    return !number(part) || may_hold(order, *of, node.parts[part].number);
  };
  if (node.kind == Kind::compare) return holds_at(node.order, 1);
  if (node.kind == Kind::between)
    return holds_at(Order::least, 1) && holds_at(Order::most, 2);
  if (node.kind != Kind::in) return true;
  for (std::size_t part = 1; part < node.parts.size(); ++part)
    if (holds_at(Order::equal, part)) return true;
  return false;
}

}  // namespace

Where::Where(const std::string& text, const std::vector<FileColumn>& columns) {
  std::vector<std::string> names;
  for (const FileColumn& column : columns) names.push_back(column.name);
  condition_ = parse_condition(text, names);
  columns_ = bind_condition(text, columns, condition_);
}

void Where::select(const Block& block, std::size_t first,
                   std::vector<std::int64_t>& selected) const {
  selected.clear();
  Truth truth;
  for (std::int64_t begin = 0; begin < block.rows; begin += kRun) {
    Rows rows{block, first, begin, std::min(kRun, block.rows - begin)};
    truth.fill(kNull);
    evaluate(condition_, rows, truth);
    for (std::int64_t i = 0; i < rows.count; ++i)
      if (truth[static_cast<std::size_t>(i)] == kTrue)
        selected.push_back(begin + i);
  }
}

bool Where::may_select(const std::vector<ChunkBounds>& bounds) const {
  return may_be_true(condition_, bounds);
}

}  // namespace penstock::files
