#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "penstock/session/stepper.h"

namespace penstock {

/// The safetensors format (huggingface/safetensors, README "Format"): length
/// of a JSON header, the header, the tensors' bytes one after the other.
/// `remarks` go into its `__metadata__`, whose values are texts.
std::string safetensors(const std::vector<NamedTensor>& tensors,
                        const Json& remarks = nullptr);
/// The part of such a file before the tensors' bytes, which follow in their
/// order.
std::string safetensors_header(const std::vector<NamedTensor>& tensors,
                               const Json& remarks = nullptr);

/// The tensors of such a file where they lie in `bytes`, which outlive them,
/// and its `__metadata__`. They may lie at any address.
struct SafetensorsView {
  std::vector<NamedTensor> tensors;  ///< not to be written to
  Json remarks;
};
/// Throws as read_safetensors() does.
SafetensorsView view_safetensors(std::string_view bytes,
                                 const std::string& path);

/// The tensors of such a file, copied out of `bytes`; ModelState::json holds
/// its `__metadata__`, or null. Throws Error(request) that names `path` and
/// what is wrong with it: nothing outside the bytes is ever read.
ModelState read_safetensors(std::string_view bytes, const std::string& path);

}  // namespace penstock
