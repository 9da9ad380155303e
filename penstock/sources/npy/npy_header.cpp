#include "penstock/sources/npy/npy_header.h"

#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>

#include "penstock/base/error.h"

namespace penstock::npy {
namespace {

using files::ArrayItems;

constexpr std::string_view kMagic = "\x93NUMPY";

/// The dictionary of a header, which is written as Python writes it:
/// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class Dictionary {
 public:
  Dictionary(std::string_view text, const std::string& place)
      : rest_(text), place_(place) {}

  void read(ArrayLayout& layout) {
    expect('{');
    while (!take('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr")
        descr(layout);
      else if (key == "fortran_order")
        layout.fortran = boolean();
      else if (key == "shape")
        shape(layout);
      else
        fail("the header has the unexpected key '" + key + "'");
      seen_ += key + ",";
      if (take('}')) break;
      expect(',');
    }
    for (const char* key : {"descr", "fortran_order", "shape"})
      if (seen_.find(key) == seen_.npos)
        fail("the header lacks '" + std::string(key) + "'");
  }

 private:
  [[noreturn]] void fail(std::string why) const {
    damaged(place_, "the header cannot be read: " + std::move(why));
  }
  void skip() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n'))
      rest_.remove_prefix(1);
  }
  bool take(char c) {
    skip();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(std::string("a '") + c + "' is missing");
  }
  std::string quoted() {
    expect('\'');
    const std::size_t end = rest_.find('\'');
    if (end == rest_.npos) fail("a text has no end");
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }
  bool boolean() {
    skip();
    for (bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    fail("fortran_order is neither True nor False");
  }
  void descr(ArrayLayout& layout) {
    skip();
    if (rest_.starts_with('\'')) return set_type(quoted(), layout);
    // A list of fields, which may have lists within.
    layout.info.items = ArrayItems::unread;
    layout.info.why = "its rows have named fields (a structured array)";
    int depth = 0;
    do {
      if (rest_.empty()) fail("descr has no end");
      const char c = rest_[0];
      if (c == '[' || c == '(') ++depth;
      if (c == ']' || c == ')') --depth;
      rest_.remove_prefix(1);
    } while (depth > 0);
  }
  void shape(ArrayLayout& layout) {
    expect('(');
    while (!take(')')) {
      skip();
      std::int64_t size = 0;
      const auto [end, error] =
          std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
      if (error != std::errc() || size < 0)
        fail("shape is not a list of sizes");
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      layout.info.shape.push_back(size);
      if (layout.info.shape.size() > 32) fail("shape has over 32 dimensions");
      if (take(')')) break;
      expect(',');
    }
  }

  std::string_view rest_;
  const std::string& place_;
  std::string seen_;
};

}  // namespace

void damaged(const std::string& place, std::string why) {
  throw Error(ErrorKind::source, {.code = "files.damaged",
                                  .what = "cannot read the array",
                                  .where = place,
                                  .why = std::move(why),
                                  .next = "get an intact copy of the file"});
}

// The array protocol's type strings: byte order ('<', '>', '|', '='), a letter
// for the kind, and bytes for each value; for 'U' it is characters of 4 bytes.
void set_type(const std::string& descr, ArrayLayout& layout) {
  static const std::map<std::string, Dtype> kTypes = {
      {"f2", Dtype::float16}, {"f4", Dtype::float32}, {"f8", Dtype::float64},
      {"i1", Dtype::int8},    {"i2", Dtype::int16},   {"i4", Dtype::int32},
      {"i8", Dtype::int64},   {"u1", Dtype::uint8},   {"u2", Dtype::uint16},
      {"u4", Dtype::uint32},  {"u8", Dtype::uint64}};
  files::ArrayInfo& info = layout.info;
  info.declared = descr;
  layout.swapped = descr.starts_with('>');
  const std::string type = descr.substr(descr.empty() ? 0 : 1);
  auto found = kTypes.find(type);
  if (found != kTypes.end()) {
    info.items = ArrayItems::numbers;
    info.dtype = found->second;
    return;
  }
  std::int64_t letters = 0;
  const char* digits = type.c_str() + (type.empty() ? 0 : 1);
  const auto [end, error] =
      std::from_chars(digits, type.c_str() + type.size(), letters);
  const bool counted = error == std::errc() && *end == '\0' && letters >= 0 &&
                       letters <= 1 << 24;
  info.dtype = Dtype::uint8;
  if (type == "b1") {
    info.items = ArrayItems::booleans;
  } else if (counted && (type[0] == 'S' || type[0] == 'U') &&
             !(type[0] == 'U' && layout.swapped)) {
    info.items = type[0] == 'S' ? ArrayItems::bytes : ArrayItems::letters;
    layout.text_bytes = type[0] == 'S' ? letters : 4 * letters;
  } else {
    info.items = ArrayItems::unread;
    info.why = type.starts_with('O')
                   ? "it holds Python objects (a pickle), which would run code"
                   : "it holds values of the type '" + descr + "'";
  }
}

std::optional<std::size_t> bytes_of(const files::ArrayInfo& info) {
  std::size_t bytes = size_of(info.dtype);
  for (std::int64_t size : info.shape)
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(size), &bytes))
      return std::nullopt;
  return bytes > std::size_t{1} << 62 ? std::nullopt : std::optional(bytes);
}

// numpy.lib.format, "Format Version 1.0" to 3.0:
//   0   "\x93NUMPY"   6   major version   7   minor version
//   8   length of the header: uint16 in version 1, uint32 in 2 and 3,
//       little-endian
//   then the header, a Python literal in ASCII (in version 3 UTF-8), filled up
//   with blanks so that the data behind it are aligned (to 64 bytes)
// The literal is parsed here by its grammar and not evaluated.
ArrayLayout read_npy_header(std::span<const std::byte> bytes,
                            const std::string& name, const std::string& place) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                              bytes.size());
  if (!text.starts_with(kMagic) || text.size() < 12)
    damaged(place,
            "the file does not start with the signature of .npy files "
            "(\\x93NUMPY)");
  const auto version = static_cast<unsigned char>(text[6]);
  if (version < 1 || version > 3)
    damaged(place, "the file has version " + std::to_string(version) +
                       " of the format, expected 1 to 3");
  const std::size_t width = version == 1 ? 2 : 4;
  std::uint32_t length = 0;
  std::memcpy(&length, text.data() + 8, width);
  if (length > text.size() - 8 - width)
    damaged(place, "the file ends within its header");
  ArrayLayout layout;
  layout.info.name = name;
  layout.begin = 8 + width + length;
  Dictionary(text.substr(8 + width, length), place).read(layout);
  files::ArrayInfo& info = layout.info;
  info.declared += " " + text_of(info.shape);
  if (info.items == ArrayItems::bytes || info.items == ArrayItems::letters) {
    if (layout.fortran && info.shape.size() > 1) {
      info.items = ArrayItems::unread;
      info.why = "it holds texts in Fortran order";
    }
    info.shape.push_back(layout.text_bytes);
    layout.fortran = false;
  }
  return layout;
}

}  // namespace penstock::npy
