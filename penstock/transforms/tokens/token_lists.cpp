#include "penstock/transforms/tokens/token_lists.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "penstock/base/listed_numbers.h"
#include "penstock/base/utf8.h"
#include "penstock/base/with_number.h"
#include "penstock/transforms/tokens/token_finisher.h"

namespace penstock {
namespace {

/// From here on no vocabulary sets the limit.
constexpr std::int64_t kMostWithout = std::int64_t{0x7fffffff};

}  // namespace

bool TokenLists::reads(const ColumnType& type) {
  return type.kind == ColumnKind::list || type.kind == ColumnKind::fixed ||
         type.is_text();
}

std::string TokenLists::read(const Column& column, std::int64_t row) {
  ids_.clear();
  return column.type.is_text() ? read_json(column.text(row))
                               : read_list(column, row);
}

std::string TokenLists::refused(std::size_t at,
                                const std::string& found) const {
  const bool labels = of_ == Of::labels;
  return (labels ? "label " : "token ") + std::to_string(at) + " is " + found +
         ", expected " + (labels ? "-100 or an id " : "an id ") +
         (most_ < kMostWithout
              ? "below " + std::to_string(most_ + 1) + ", the vocabulary size"
              : "from 0 to " + std::to_string(most_));
}

std::string TokenLists::read_list(const Column& column, std::int64_t row) {
  const std::optional<ListedNumbers> found = listed_numbers(column, row);
  const bool halves = found && (found->dtype == Dtype::float16 ||
                                found->dtype == Dtype::bfloat16);
  if (!found || halves) {
    if (column.type.kind == ColumnKind::list &&
        column.offset(row) == column.offset(row + 1))
      return {};  // of a type that nobody knows
    return "holds another kind of list, expected a list of token ids";
  }
  if (column.type.kind == ColumnKind::list)
    for (std::int64_t i = 0; i < found->count; ++i)
      if (!column.children[0].valid(column.offset(row) + i))
        return refused(static_cast<std::size_t>(i), "NULL");
  const auto count = static_cast<std::size_t>(found->count);
  return with_number(found->dtype, [&]<class From>(Typed<From>) {
    for (std::size_t i = 0; i < count; ++i) {
      From from{};
      std::memcpy(&from, found->bytes.data() + i * sizeof(from), sizeof(from));
      bool good = false;
      if constexpr (std::is_floating_point_v<From>)
        good = from >= 0 &&
               static_cast<double>(from) <= static_cast<double>(most_) &&
               from == std::trunc(from);
      else
        good =
            std::cmp_greater_equal(from, 0) && std::cmp_less_equal(from, most_);
      if (of_ == Of::labels && static_cast<double>(from) == kIgnored) {
        ids_.push_back(kNoLabel);
        continue;
      }
      if (!good) return refused(i, Json(static_cast<double>(from)).dump());
      ids_.push_back(static_cast<std::uint32_t>(from));
    }
    return std::string();
  });
}

std::string TokenLists::read_json(std::string_view text) {
  const char* at = text.data();
  const char* end = at + text.size();
  auto space = [&] {
    while (at < end &&
           (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
      ++at;
  };
  const std::string expected =
      "holds " + beginning(text) +
      ", expected a list of token ids; text needs a 'tokenizer'";
  space();
  if (at == end || *at++ != '[') return expected;
  auto closes = [&] {
    ++at;
    space();
    return at == end ? std::string() : expected;
  };
  space();
  if (at < end && *at == ']') return closes();
  for (;;) {
    space();
    std::int64_t id = -1;
    auto [next, error] = std::from_chars(at, end, id);
    if (error == std::errc() && next == end) return expected;
    const bool ends =
        next < end && (*next == ',' || *next == ']' || *next == ' ' ||
                       *next == '\n' || *next == '\t' || *next == '\r');
    const bool none = of_ == Of::labels && id == kIgnored;
    if (error != std::errc() || !ends || (!none && (id < 0 || id > most_))) {
      const char* token = at;
      while (at < end && *at != ',' && *at != ']') ++at;
      return refused(ids_.size(),
                     beginning({token, static_cast<std::size_t>(at - token)}));
    }
    ids_.push_back(none ? kNoLabel : static_cast<std::uint32_t>(id));
    at = next;
    space();
    if (at < end && *at == ']') return closes();
    if (at == end || *at++ != ',') return expected;
  }
}

}  // namespace penstock
