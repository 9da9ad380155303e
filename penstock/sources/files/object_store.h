#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace penstock::files {

/// A file in an object store, open for reading. Thread-safe.
class StoredFile {
 public:
  virtual ~StoredFile() = default;
  /// Reads some of the bytes from `offset` on; 0: none. Throws
  /// Error(source), files.store.
  virtual std::size_t read(std::int64_t offset, std::span<char> to) const = 0;
};

/// What an object store says of a file.
struct StoredObject {
  std::string path;  ///< "s3://bucket/key"
  std::int64_t bytes = 0;
  std::int64_t changed_ns = 0;  ///< since 1970
};

/// An object store, reached in the way that one URI says. Thread-safe; its
/// functions throw Error(source), files.store.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;
  /// The file of this path; or, where it is a folder, all files below it, in
  /// any order. Empty: there is neither.
  virtual std::vector<StoredObject> list(const std::string& path) const = 0;
  virtual std::unique_ptr<StoredFile> open(const StoredObject& file) const = 0;
};

/// Throws Error(source), files.store: what a store says of `path`, and what to
/// do where that is known.
[[noreturn]] void refuse_stored(const std::string& path, std::string says);

/// What the plugin libpenstock_object_store_RELEASE.so gives to those that read
/// files.
struct ObjectStorePlugin {
  std::shared_ptr<const ObjectStore> (*connect)(const std::string& uri);
};

inline constexpr const char* kObjectStoreEntry = "penstock_object_store_part";

/// Whether a path is the URI of an object store: "s3://...".
bool is_stored(const std::string& path);

/// A URI without what follows its '?'.
std::string path_of_stored(const std::string& uri);

/// Error(request), source.uri, for a URI of an object store that holds
/// credentials or an option that is not known. It is not shown then.
void check_stored(const std::string& uri);

/// The store that a URI names, by the plugin or by pyarrow. Throws as
/// check_stored(), and Error(source): source.part_missing where both are
/// missing, files.store.
std::shared_ptr<const ObjectStore> connect_store(const std::string& uri);

}  // namespace penstock::files
