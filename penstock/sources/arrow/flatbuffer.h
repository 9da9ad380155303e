#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string_view>

namespace penstock::arrow_files {

/// Reads a flatbuffer, whose bytes are borrowed. It holds tables. A table
/// begins with the distance back to a list of where its fields are; a field
/// that is a table or a vector holds the distance to it. Places are offsets
/// from the first byte; a function throws std::out_of_range for one that is
/// not in the buffer.
class Flatbuffer {
 public:
  explicit Flatbuffer(std::string_view bytes) : bytes_(bytes) {}

  template <class Number>
  Number number(std::size_t at) const {
    Number number;
    std::memcpy(&number, text(at, sizeof(number)).data(), sizeof(number));
    return number;
  }
  std::string_view text(std::size_t at, std::size_t size) const {
    if (at > bytes_.size() || bytes_.size() - at < size)
      throw std::out_of_range("beyond the flatbuffer");
    return bytes_.substr(at, size);
  }
  std::size_t follow(std::size_t at) const {
    return at + number<std::uint32_t>(at);
  }
  /// Where a field of a table is; 0: the table lacks it.
  std::size_t field(std::size_t table, std::size_t which) const {
    const auto list = static_cast<std::size_t>(
        static_cast<std::int64_t>(table) - number<std::int32_t>(table));
    const std::size_t entry = 4 + 2 * which;
    if (entry + 2 > number<std::uint16_t>(list)) return 0;
    const auto distance = number<std::uint16_t>(list + entry);
    return distance == 0 ? 0 : table + distance;
  }
  /// A field that is a number.
  template <class Number>
  Number value(std::size_t table, std::size_t which, Number missing) const {
    const std::size_t at = field(table, which);
    return at == 0 ? missing : number<Number>(at);
  }
  /// A field that is a text; empty where the table lacks it.
  std::string_view text_of(std::size_t table, std::size_t which) const {
    const std::size_t at = field(table, which);
    if (at == 0) return {};
    const std::size_t begin = follow(at);
    return text(begin + 4, number<std::uint32_t>(begin));
  }
  /// A field that is a table. Throws std::out_of_range where it is missing.
  std::size_t table_of(std::size_t table, std::size_t which) const {
    const std::size_t at = field(table, which);
    if (at == 0) throw std::out_of_range("a table lacks a field");
    return follow(at);
  }

  struct Vector {
    std::size_t first = 0, count = 0;
  };
  /// A field that is a vector of elements of `bytes` each; empty where the
  /// table lacks it.
  Vector vector_of(std::size_t table, std::size_t which,
                   std::size_t bytes) const {
    const std::size_t at = field(table, which);
    if (at == 0) return {};
    const std::size_t begin = follow(at);
    const Vector vector{begin + 4, number<std::uint32_t>(begin)};
    text(vector.first, vector.count * bytes);  // all of it is there
    return vector;
  }

 private:
  const std::string_view bytes_;
};

}  // namespace penstock::arrow_files
