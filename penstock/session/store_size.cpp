#include "penstock/session/store_size.h"

#include <system_error>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/file.h"
#include "penstock/base/folder.h"
#include "penstock/base/temporary.h"

namespace penstock {
namespace {

/// Its key, side and length.
constexpr std::int64_t kBesidesRow = 13;
constexpr double kEnoughToKnow = 0.02;

}  // namespace

StoreRoom room_for(const std::filesystem::path& store) {
  remove_leftovers(store);
  StoreRoom room{.folder = store.parent_path()};
  room.free = free_bytes(room.folder);
  std::error_code unknown;
  // As the data set calls their folder.
  const std::filesystem::path parts = store.string() + ".parts";
  for (const FolderEntry& part : entries_of(parts, unknown)) {
    const auto bytes = std::filesystem::file_size(part.path, unknown);
    if (!unknown) room.parts += static_cast<std::size_t>(bytes);
  }
  return room;
}

StoreSize::StoreSize(StoreRoom room, Note note)
    : room_(std::move(room)), note_(std::move(note)) {}

void StoreSize::check(const ScanProgress& progress) {
  if (progress.share <= progress.found_share || progress.share <= 0) return;
  const double bytes =
      static_cast<double>(progress.stored_bytes + kBesidesRow * progress.rows) /
      progress.share;
  if (!told_ && note_)
    note_("the store will take about " +
          shown_bytes(static_cast<std::size_t>(bytes)) + " in " +
          room_.folder.string() +
          (room_.free ? ", where " + shown_bytes(*room_.free) + " are free"
                      : ""));
  told_ = true;
  // Parsed parts are there until the store is.
  const double most = 2 * bytes;
  if (!room_.free || progress.share < kEnoughToKnow ||
      most <
          static_cast<double>(*room_.free) + static_cast<double>(room_.parts))
    return;
  throw Error(
      ErrorKind::request,
      {.code = "prepare.disk",
       .what = "there is not enough space for the store",
       .where = room_.folder.string(),
       .why = "the store and its parts will take about " +
              shown_bytes(static_cast<std::size_t>(most)) +
              (room_.parts > 0
                   ? ", of which " + shown_bytes(room_.parts) + " exist already"
                   : "") +
              ", and " + shown_bytes(*room_.free) + " are free",
       .next = "name a folder with more space as 'loader.cache_dir', or "
               "prepare fewer rows ('source.where')"});
}

}  // namespace penstock
