#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "penstock/transforms/json_set/elements.h"

namespace penstock {

/// The definition of a correctly read list of objects: a plain loop over
/// simdjson, with all the errors. FastJson is compared with it.
///
/// Keys compare by their unescaped text; a key given twice takes the last.
class ReferenceJson {
 public:
  explicit ReferenceJson(const KeySlots& slots);
  ~ReferenceJson();
  ReferenceJson(ReferenceJson&&) noexcept;

  /// Fills `out`, or says why the text is no list of objects with numbers.
  std::optional<JsonFault> parse(std::string_view text, Elements& out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock
