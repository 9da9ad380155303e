#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

namespace penstock::python {

/// A text that may hold the name of a file, whose bytes need not be UTF-8: as
/// os.fsdecode() has it.
inline nanobind::object file_text(std::string_view text) {
  return nanobind::steal(PyUnicode_DecodeUTF8(
      text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
}

/// The same in a message, which can be printed: such bytes are "\xff".
inline nanobind::object message_text(std::string_view text) {
  return nanobind::steal(PyUnicode_DecodeUTF8(
      text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

}  // namespace penstock::python
