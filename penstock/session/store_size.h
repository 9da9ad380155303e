#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "penstock/dataset/dataset.h"

namespace penstock {

/// Where a store will be, and what may be written there.
struct StoreRoom {
  std::filesystem::path folder;
  std::optional<std::size_t> free;  ///< none: unknown
  /// What an interrupted call has left of the rows, parsed: it is not free, and
  /// need not be written.
  std::size_t parts = 0;
};

/// Of a store that is to be made in parts. Removes what writers of it left that
/// were killed: that room is free.
StoreRoom room_for(const std::filesystem::path& store);

/// Tells how large a store will be as soon as some rows show it, and refuses
/// what will not fit once enough of them do. One thread's at a time.
class StoreSize {
 public:
  using Note = std::function<void(const std::string&)>;
  /// `note` may be empty.
  StoreSize(StoreRoom room, Note note);

  /// Throws Error(request), code prepare.disk.
  void check(const ScanProgress& progress);

 private:
  const StoreRoom room_;
  const Note note_;
  bool told_ = false;
};

}  // namespace penstock
