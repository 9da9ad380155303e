#include <cstring>

#include "penstock/sources/hdf5/filters/steps.h"

// LZF: a byte below 32 begins a run of literal bytes, of one more than it says;
// any other refers back: its upper three bits are the length less two (seven:
// another byte is added), its lower five bits and the next byte how far back.
namespace penstock::hdf5 {

std::string undo_lzf(In in, std::size_t most, Bytes& out) {
  out.resize(most);
  auto* to = out.mutable_data<unsigned char>();
  std::size_t filled = 0, at = 0;
  auto byte = [&](std::size_t i) { return std::to_integer<unsigned>(in[i]); };
  constexpr const char* kFault = "its bytes are not valid LZF data";
  while (at < in.size()) {
    const unsigned control = byte(at++);
    if (control < 32) {
      const std::size_t count = control + 1;
      if (count > in.size() - at || count > most - filled) return kFault;
      std::memcpy(to + filled, in.data() + at, count);
      at += count;
      filled += count;
      continue;
    }
    std::size_t count = control >> 5;
    if (count == 7) {
      if (at == in.size()) return kFault;
      count += byte(at++);
    }
    count += 2;
    if (at == in.size()) return kFault;
    const std::size_t back = ((control & 31) << 8 | byte(at++)) + 1;
    if (back > filled || count > most - filled) return kFault;
    // They may overlap: what was just written is read again.
    for (std::size_t i = 0; i < count; ++i, ++filled)
      to[filled] = to[filled - back];
  }
  out.resize(filled);
  return {};
}

}  // namespace penstock::hdf5
