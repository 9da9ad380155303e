#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/sources/hdf5/index_program/protocol.h"

namespace penstock::hdf5 {

/// What the values of a data set are.
struct ValueType {
  enum class Is : std::uint8_t {
    integer,
    floating,
    boolean,   ///< one byte, 0 or 1
    text,      ///< of a fixed size
    texts,     ///< in the global heap
    list,      ///< in the global heap
    bytes,     ///< opaque
    array,     ///< of `dims` of the one in `inner`
    compound,  ///< of the members in `inner`
    other,
  } is = Is::other;
  std::int64_t bytes = 0;  ///< of one value as it lies in the file
  bool is_signed = false;
  bool big = false;     ///< big-endian
  bool brain = false;   ///< bfloat16
  bool blanks = false;  ///< of text: what fills it up; else zeros
  std::vector<std::int64_t> dims = {};
  std::vector<ValueType> inner = {};
  std::vector<std::pair<std::string, std::int64_t>> members = {};  ///< name, at
  std::string what = {};  ///< of `other`: "references to objects"
  std::vector<std::string> names =
      {};  ///< of an enum of 0, 1, 2: in this order

  /// "float32", "uint16", "text", "compound", ...
  std::string shown() const;
};

/// Values of both lie in the same way; names of an enum do not count.
bool lie_alike(const ValueType& a, const ValueType& b);
/// Values are in the global heap of their file, or hold some that are.
bool is_in_heap(const ValueType& type);

/// A step of the pipeline that a chunk went through when it was written.
struct Filter {
  int id = 0;
  std::string name;  ///< as the file calls it; may be empty
  std::vector<std::uint32_t> values;
};

/// Rows of a virtual data set: `rows` from `first` on are those of `path` in
/// `file` from `from` on.
struct Mapping {
  std::int64_t first = 0, rows = 0;
  std::string file, path;
  std::int64_t from = 0;
};

/// A data set, and where its values lie. All numbers have been checked against
/// each other and against the size of the file.
struct DataSet {
  std::string path;
  ValueType type;
  std::vector<std::int64_t> dims;  ///< none: a single value
  enum class Layout : std::uint8_t {
    contiguous,
    chunked,
    compact,
    mapped,  ///< virtual
    other
  } layout = Layout::other;
  std::string why = {};  ///< of `other`
  std::string fill =
      {};  ///< one value: of what was never written; empty: zeros
  std::int64_t offset = 0, stored = 0;  ///< contiguous; in bytes
  std::string data = {};                ///< compact
  std::vector<std::int64_t> chunk = {};
  std::vector<Filter> filters = {};
  std::vector<ChunkPlace> places = {};
  std::vector<Mapping> mappings = {};
  Json attributes = Json(Json::Object{});
  std::vector<std::string> singles = {};  ///< attributes that are float32

  /// Bytes of a chunk when it is decoded.
  std::int64_t chunk_bytes() const;
  /// How many chunks there are along a dimension.
  std::int64_t grid(std::size_t dimension) const {
    return (dims[dimension] + chunk[dimension] - 1) / chunk[dimension];
  }
};

/// What a file holds.
struct FileIndex {
  bool matlab = false;
  std::int64_t base = 0;  ///< bytes before the file proper: addresses count on
  std::vector<DataSet> sets;
  /// Attributes of groups that have some, and of "/".
  std::vector<std::pair<std::string, Json>> groups;
  /// What is not there to be read: its path, and why.
  std::vector<std::pair<std::string, std::string>> skipped;

  /// Null where there is no such data set.
  const DataSet* find(const std::string& path) const;
  const Json* attributes_of(const std::string& group) const;

  std::unordered_map<std::string, std::size_t> by_path;   ///< of `sets`
  std::unordered_map<std::string, std::size_t> by_group;  ///< of `groups`
};

/// Makes an index of what the index program has sent about a file of
/// `file_bytes`: its JSON, and the chunks of each chunked data set. What
/// contradicts itself is an Error(source), hdf5.damaged, that names `path`.
FileIndex index_from(const std::string& path, std::int64_t file_bytes,
                     const std::string& json,
                     std::vector<std::vector<ChunkPlace>> chunks);

}  // namespace penstock::hdf5
