#pragma once

#include <memory>
#include <string>

#include "penstock/base/error.h"
#include "penstock/sources/files/object_store.h"

namespace penstock::arrow_files {

/// Who reaches object stores, as files::StoreChoice has it: the plugin for them
/// with the libraries that choose_arrow() found, or pyarrow itself.
/// Thread-safe.
std::shared_ptr<const files::ObjectStore> chosen_store(const std::string& uri,
                                                       const Error* why);

}  // namespace penstock::arrow_files
