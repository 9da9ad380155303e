#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/sources/files/array_file.h"

namespace penstock::npy {

/// How the bytes of an array lie in a file.
struct ArrayLayout {
  files::ArrayInfo info;
  bool fortran = false;         ///< the first dimension changes fastest
  bool swapped = false;         ///< of the other byte order
  std::size_t begin = 0;        ///< of the data, from the start of the file
  std::int64_t text_bytes = 0;  ///< of one text
};

/// Reads the header of a .npy file (versions 1 to 3 of the format, as
/// numpy.lib.format describes it). `place` is for messages. Types that no
/// tensor can hold become ArrayItems::unread. Throws Error(source),
/// files.damaged.
ArrayLayout read_npy_header(std::span<const std::byte> bytes,
                            const std::string& name, const std::string& place);

/// What `descr` of a header says: "<f4", "|b1", "<U10".
void set_type(const std::string& descr, ArrayLayout& layout);

/// The bytes that an array of this shape has; none where there are more than a
/// file can have.
std::optional<std::size_t> bytes_of(const files::ArrayInfo& info);

/// Error(source), files.damaged.
[[noreturn]] void damaged(const std::string& place, std::string why);

/// Does what may find damage; why it is damaged, or nothing.
template <class Action>
std::string damage_in(const Action& action) {
  try {
    action();
    return {};
  } catch (const Error& error) {
    if (error.parts().code != "files.damaged") throw;
    return error.parts().where + ": " + error.parts().why;
  }
}

}  // namespace penstock::npy
