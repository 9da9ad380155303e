#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

/// A half-open range of bytes.
struct ByteRange {
  std::size_t begin = 0, end = 0;

  std::size_t size() const { return end - begin; }
};

/// A text that is changed step by step, and, where that is asked for, of which
/// bytes of the document each of its bytes was made. Each step says that by the
/// rules of NormalizedString in `tokenizers`, on which its offsets depend.
struct Aligned {
  std::string text;
  bool tracked = false;
  std::vector<ByteRange> from;  ///< one for each byte, where it is tracked
  std::size_t begin = 0;        ///< where the text began in the document
  /// How long steps may make the text. Those of a file that is meant well stay
  /// far below it.
  std::size_t most = 0;

  /// A part of a document, from `begin` on.
  void assign(std::string_view part, std::size_t begin, bool tracked);
};

/// Writes an Aligned again, from its first character to its last.
class Rewrite {
 public:
  explicit Rewrite(Aligned& of) : of_(&of) { text_.reserve(of.text.size()); }

  /// How many bytes were written.
  std::size_t size() const { return text_.size(); }
  bool at_end() const { return at_ >= of_->text.size(); }
  /// What has not been read yet.
  std::string_view rest() const {
    return std::string_view(of_->text).substr(at_);
  }
  /// The next character, its size in `size`; not at the end.
  std::uint32_t peek(std::uint32_t& size) const;

  /// Takes the next `bytes` bytes over as they are.
  void keep(std::size_t bytes);
  /// Leaves the next `bytes` bytes out.
  void drop(std::size_t bytes) { at_ += bytes; }
  void drop_characters(std::size_t count);
  /// Writes `with` for the next `bytes`, as of the first of them.
  void replace(std::size_t bytes, std::string_view with);
  /// Writes `with` before the next character, as of it.
  void prepend(std::string_view with);
  /// Writes more that is of the character that was read last.
  void insert(std::string_view more);
  /// Writes a character as the steps of `tokenizers` say it: for the next one
  /// and, where `change` is negative, for as many more; where it is positive,
  /// as one more.
  void put(std::uint32_t code, int change);
  /// Puts the new text in the place of the old one.
  void finish();

 private:
  void write(std::string_view text, ByteRange from);

  Aligned* of_;
  std::size_t at_ = 0;
  std::string text_;
  std::vector<ByteRange> from_;
};

}  // namespace penstock
