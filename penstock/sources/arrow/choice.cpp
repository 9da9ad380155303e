#include <memory>
#include <mutex>
#include <string>

#include "penstock/sources/arrow/libraries.h"
#include "penstock/sources/arrow/scanned_file.h"
#include "penstock/sources/arrow/scanner.h"
#include "penstock/sources/files/object_store.h"
#include "penstock/sources/plugin.h"

namespace penstock {
namespace {

struct Kept {
  std::mutex mutex;
  std::shared_ptr<ArrowChoice> choice;
};

Kept& kept() {
  static Kept only;
  return only;
}

std::shared_ptr<ArrowChoice> kept_choice() {
  const std::scoped_lock lock(kept().mutex);
  return kept().choice;
}

/// Whether a plugin that needs `libraries` is to be tried, which are loaded
/// then where they are found.
bool ready_for_plugin(ArrowChoice& choice, arrow_files::Libraries libraries) {
  if (choice.scanner_first()) return false;
  const std::string pyarrow = choice.pyarrow();
  if (!pyarrow.empty()) arrow_files::load_libraries(pyarrow, libraries);
  arrow_files::load_named_libraries(libraries);
  return true;
}

/// Who reaches object stores: the plugin for them, or pyarrow itself.
std::shared_ptr<const files::ObjectStore> chosen_store(const std::string& uri,
                                                       const Error* why) {
  const std::shared_ptr<ArrowChoice> choice = kept_choice();
  if (why == nullptr &&
      ready_for_plugin(*choice, arrow_files::Libraries::of_stores))
    return nullptr;
  return choice->connect(uri);
}

}  // namespace

void choose_arrow(std::shared_ptr<ArrowChoice> choice) {
  {
    const std::scoped_lock lock(kept().mutex);
    kept().choice = choice;
  }
  choose_plugin("arrow", [choice](const Error* why) -> const SourcePlugin* {
    if (why == nullptr &&
        ready_for_plugin(*choice, arrow_files::Libraries::of_files))
      return nullptr;
    return &arrow_files::scanning_plugin(choice->scanner());
  });
  files::choose_store(chosen_store);
}

}  // namespace penstock
