#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/base/tensor.h"

namespace penstock {

/// A tensor of a safetensors file.
struct SafetensorsEntry {
  std::string name;
  std::string declared;             ///< its type, as the file names it
  std::optional<Dtype> dtype = {};  ///< missing: no tensor can have this type
  Shape shape = {};
  std::size_t begin = 0, end = 0;  ///< of its bytes, from the file's start
};

/// What stands before the tensors of a safetensors file.
struct SafetensorsHeader {
  std::vector<SafetensorsEntry> tensors;  ///< in the order of the header
  Json remarks;                           ///< `__metadata__`; null: none
};

/// The key of the remarks, which no tensor can have.
inline constexpr std::string_view kSafetensorsRemarks = "__metadata__";

/// What such files call a type: "F32", "BOOL".
std::string_view name_in_safetensors(Dtype dtype);

/// Reads the header of a file, of which `bytes` are the whole. Each tensor lies
/// within the file, shares no byte with another, and has as many bytes as its
/// shape needs, if its type is known. Throws Error(request), code
/// safetensors.damaged, that names `path`.
SafetensorsHeader read_safetensors_header(std::span<const std::byte> bytes,
                                          const std::string& path);

}  // namespace penstock
