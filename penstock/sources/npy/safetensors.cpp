#include "penstock/sources/npy/safetensors.h"

#include <algorithm>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/safetensors_header.h"

namespace penstock::npy {
namespace {

ArrayLayout layout_of(const SafetensorsEntry& tensor) {
  ArrayLayout layout{.begin = tensor.begin};
  files::ArrayInfo& info = layout.info;
  info.name = tensor.name;
  info.declared = tensor.declared + " " + text_of(tensor.shape);
  info.shape = tensor.shape;
  info.dtype = Dtype::uint8;
  if (!tensor.dtype) {
    info.items = files::ArrayItems::unread;
    info.why = "it holds values of the type '" + tensor.declared + "'";
  } else if (*tensor.dtype == Dtype::boolean) {
    info.items = files::ArrayItems::booleans;
  } else {
    info.dtype = *tensor.dtype;
  }
  return layout;
}

SafetensorsHeader header_in(std::span<const std::byte> bytes,
                            const std::string& path) try {
  return read_safetensors_header(bytes, path);
} catch (const Error& error) {
  damaged(path, error.parts().why);
}

}  // namespace

std::vector<ArrayLayout> read_safetensors(std::span<const std::byte> bytes,
                                          const std::string& path) {
  std::vector<ArrayLayout> tensors;
  for (const SafetensorsEntry& tensor : header_in(bytes, path).tensors)
    tensors.push_back(layout_of(tensor));
  std::ranges::sort(tensors, {},
                    [](const ArrayLayout& one) { return one.info.name; });
  return tensors;
}

}  // namespace penstock::npy
