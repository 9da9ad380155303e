#pragma once

#include <span>
#include <string>
#include <vector>

#include "penstock/sources/npy/npy_header.h"

namespace penstock::npy {

/// The tensors of a .safetensors file, in the order of their names: a length of
/// 8 bytes, that much JSON, then the tensors' bytes. Throws Error(source),
/// files.damaged, also for what overlaps or lies outside.
std::vector<ArrayLayout> read_safetensors(std::span<const std::byte> bytes,
                                          const std::string& path);

}  // namespace penstock::npy
