#pragma once

/// Memory that this process holds, by what for and where: each holder charges
/// what it takes, and the report shows it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace penstock {

enum class HeldFor : std::uint8_t {
  rows,         ///< prepared rows, in their tiers
  batches,      ///< the ring of batches, and what fills them
  copies,       ///< what is on its way to or from a device
  values,       ///< parsed values of the scan
  keys,         ///< keys of rows, their sides and places
  records,      ///< what was read ahead of batches
  checkpoints,  ///< copies of a model that are written to files
};

enum class HeldIn : std::uint8_t {
  device,  ///< a device's own memory
  pinned,  ///< host memory that a GPU reads
  host,    ///< any other host memory
  files,   ///< mapped files, which the page cache may leave out
};

inline constexpr std::size_t kHeldFors = 7, kHeldIns = 4;

const char* name_of(HeldFor owner);
const char* name_of(HeldIn place);

/// Bytes that its owner holds, until it is destroyed. Move-only. Any thread may
/// make, change and destroy charges at once; one charge belongs to one thread
/// at a time.
class MemoryCharge {
 public:
  MemoryCharge() = default;
  MemoryCharge(HeldFor owner, HeldIn place, std::size_t bytes);
  MemoryCharge(MemoryCharge&& other) noexcept { swap(other); }
  MemoryCharge& operator=(MemoryCharge&& other) noexcept {
    MemoryCharge old(std::move(other));
    swap(old);
    return *this;
  }
  ~MemoryCharge() { change_to(0); }

  void change_to(std::size_t bytes);
  std::size_t bytes() const { return bytes_; }

 private:
  void swap(MemoryCharge& other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(place_, other.place_);
    std::swap(bytes_, other.bytes_);
  }

  HeldFor owner_ = HeldFor::rows;
  HeldIn place_ = HeldIn::host;
  std::size_t bytes_ = 0;
};

/// What is held now, and was at most at any time.
struct HeldMemory {
  HeldFor owner = HeldFor::rows;
  HeldIn place = HeldIn::host;
  std::size_t bytes = 0, peak = 0;
};

/// Of each owner in each place, in the order of the names above. Numbers that
/// change meanwhile may be of different moments.
std::array<HeldMemory, kHeldFors * kHeldIns> held_memory();

}  // namespace penstock
