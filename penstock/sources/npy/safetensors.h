#pragma once

#include <span>
#include <string>
#include <vector>

#include "penstock/sources/npy/npy_header.h"

namespace penstock::npy {

/// The tensors of a .safetensors file, in the order of their names. Throws
/// Error(source), code files.damaged, for what read_safetensors_header()
/// refuses.
std::vector<ArrayLayout> read_safetensors(std::span<const std::byte> bytes,
                                          const std::string& path);

}  // namespace penstock::npy
