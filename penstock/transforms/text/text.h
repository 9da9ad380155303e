#pragma once

#include <memory>
#include <string>

#include "penstock/transforms/field_kind.h"

namespace penstock {

/// A column of texts, or of bytes, as they are.
struct Text {
  std::string column;
  bool null_is_empty = false;  ///< else such a row is bad
};

/// The kind `text`: the UTF-8 bytes of the rows, one after the other, are the
/// tensor NAME, uint8, beside NAME_cu_seqlens: as an `array` of bytes that is
/// packed.
std::shared_ptr<const FieldKind> make_text(std::string name, Text text);

}  // namespace penstock
