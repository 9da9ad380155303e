#include "penstock/sources/hdf5/index.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "penstock/base/error.h"

namespace penstock::hdf5 {
namespace {

constexpr std::int64_t kMostValues = std::int64_t{1} << 48;
constexpr std::int64_t kMostValueBytes = std::int64_t{1} << 28;
/// What was never written is the fill value: so much of it, in so many chunks
/// for each that was written, is a size that is damaged.
constexpr double kMostAbsentBytes = std::int64_t{1} << 30, kMostAbsent = 1000;

// What the index program sends is as trustworthy as the file: libhdf5 checks
// little of what it reads. So this is the border. After index_from(), readers
// compute offsets and sizes without further checks, because
//   1. the product of all extents of a data set is at most 2^48, and the
//      bytes of its values fit into int64: either they are stored in the file,
//      whose size is known, or the rule for absent values bounds them;
//   2. a contiguous data set, and each chunk, lie between 0 and the file's end;
//   3. there is one place for each cell of the grid of chunks, in row-major
//      order, and a decoded chunk has at most kMostChunkBytes;
//   4. members of a compound lie inside it, and an array has the size of its
//      elements;
//   5. mappings name rows that their virtual data set has. Whether the other
//      file has them is checked once that is indexed, in row_columns.cpp.
[[noreturn]] void refuse(std::string why) {
  throw std::move(why);  // caught by index_from(), which knows the file
}

const Json& part(const Json& of, const char* key) {
  const Json* found = of.is_object() ? of.find(key) : nullptr;
  if (found == nullptr)
    refuse("the index of the file has no " + std::string(key));
  return *found;
}

std::int64_t number(const Json& of, const char* key, std::int64_t most) {
  const Json& found = part(of, key);
  const auto* value = std::get_if<std::int64_t>(&found.value());
  if (value == nullptr || *value < 0 || *value > most)
    refuse("the index of the file gives " + std::string(key) + " as " +
           found.dump());
  return *value;
}

std::string text(const Json& of, const char* key) {
  const Json& found = part(of, key);
  if (!found.is_string())
    refuse("the index of the file gives " + std::string(key) + " as " +
           found.dump() + ", expected a string");
  return found.string();
}

bool flag(const Json& of, const char* key) {
  const auto* value = std::get_if<bool>(&part(of, key).value());
  return value != nullptr && *value;
}

/// `least` is the smallest extent. Divides before it multiplies, so that the
/// product cannot overflow. An extent of zero counts as one: the bound then
/// also holds for the other dimensions alone.
std::vector<std::int64_t> extents(const Json& of, const char* key,
                                  std::int64_t least) {
  const Json& found = part(of, key);
  std::vector<std::int64_t> dims;
  if (!found.is_array())
    refuse("the index of the file gives " + std::string(key) + " as " +
           found.dump() + ", expected a list");
  std::int64_t values = 1;
  for (const Json& size : found.array()) {
    const auto* value = std::get_if<std::int64_t>(&size.value());
    if (value == nullptr || *value < least ||
        *value > kMostValues / std::max<std::int64_t>(1, values))
      refuse("the data set would have " + found.dump() + " values");
    values *= std::max<std::int64_t>(1, *value);
    dims.push_back(*value);
  }
  return dims;
}

std::string from_hexadecimal(const std::string& digits) {
  auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (std::size_t at = 0; at + 1 < digits.size(); at += 2)
    bytes += static_cast<char>(16 * digit(digits[at]) + digit(digits[at + 1]));
  return bytes;
}

ValueType::Is value_kind(const std::string& is) {
  using Is = ValueType::Is;
  const std::pair<const char*, Is> kinds[] = {
      {"integer", Is::integer},  {"float", Is::floating},
      {"boolean", Is::boolean},  {"text", Is::text},
      {"texts", Is::texts},      {"list", Is::list},
      {"bytes", Is::bytes},      {"array", Is::array},
      {"compound", Is::compound}};
  for (const auto& [name, kind] : kinds)
    if (is == name) return kind;
  return Is::other;
}

ValueType type_from(const Json& described) {
  ValueType type;
  type.is = value_kind(text(described, "is"));
  type.bytes = number(described, "bytes", kMostValueBytes);
  if (type.bytes < 1) refuse("a value of the data set has no bytes");
  using Is = ValueType::Is;
  if (type.is == Is::integer) {
    type.is_signed = flag(described, "signed");
    type.big = flag(described, "big");
    if (const Json* names = described.find("names"))
      for (const Json& name : names->array())
        type.names.push_back(name.string());
  } else if (type.is == Is::floating) {
    type.big = flag(described, "big");
    type.brain = flag(described, "brain");
  } else if (type.is == Is::text) {
    type.blanks = flag(described, "blanks");
  } else if (type.is == Is::other) {
    type.what = text(described, "what");
  } else if (type.is == Is::list) {
    type.inner.push_back(type_from(part(described, "of")));
  } else if (type.is == Is::array) {
    type.dims = extents(described, "dims", 1);
    type.inner.push_back(type_from(part(described, "of")));
    std::int64_t bytes = type.inner[0].bytes;
    for (std::int64_t size : type.dims) bytes *= size;
    if (bytes != type.bytes) refuse("the size of its arrays differs");
  } else if (type.is == Is::compound) {
    for (const Json& member : part(described, "members").array()) {
      type.members.emplace_back(text(member, "name"),
                                number(member, "at", type.bytes));
      type.inner.push_back(type_from(part(member, "type")));
      if (type.members.back().second + type.inner.back().bytes > type.bytes)
        refuse("its member " + type.members.back().first + " lies outside");
    }
  }
  // In the file both are a length, a place in the heap, and a number there.
  if ((type.is == Is::texts || type.is == Is::list) && type.bytes != 16)
    type = {.is = Is::other,
            .bytes = type.bytes,
            .what =
                "values of variable length with addresses that are not of "
                "64 bits"};
  return type;
}

std::int64_t values_of(const std::vector<std::int64_t>& dims) {
  std::int64_t values = 1;
  for (std::int64_t size : dims) values *= size;
  return values;
}

void add_chunks(const Json& described, std::int64_t file_bytes,
                std::vector<ChunkPlace>&& places, DataSet& set) {
  set.layout = DataSet::Layout::chunked;
  set.chunk = extents(described, "chunk", 1);
  if (set.chunk.size() != set.dims.size() ||
      set.chunk_bytes() > kMostChunkBytes)
    refuse("the chunks do not fit the data set");
  // In the order in which they were applied when the chunk was written (HDF5
  // File Format Specification 3.0, IV.A.2.l, Filter Pipeline); reading undoes
  // them from the last to the first.
  for (const Json& filter : part(described, "filters").array()) {
    Filter& to = set.filters.emplace_back();
    to.id = static_cast<int>(number(filter, "id", 1 << 16));
    to.name = text(filter, "name");
    for (const Json& value : part(filter, "values").array())
      to.values.push_back(static_cast<std::uint32_t>(value.integer()));
  }
  std::int64_t chunks = 1;
  for (std::size_t d = 0; d < set.dims.size(); ++d) chunks *= set.grid(d);
  if (std::ssize(places) != chunks)
    refuse("found " + std::to_string(places.size()) + " chunks, expected " +
           std::to_string(chunks));
  const auto end = static_cast<std::uint64_t>(file_bytes);
  for (std::size_t at = 0; at < places.size(); ++at)
    if (places[at].bytes > end || places[at].offset > end - places[at].bytes)
      refuse("chunk " + std::to_string(at) +
             " is beyond the end of the file: the file was not written "
             "completely");
  // A damaged extent makes a data set of a few kilobytes claim terabytes of
  // fill values. Both conditions are needed: sparse data sets are legitimate,
  // and so are small ones of which nothing was written yet.
  const auto stored = std::ranges::count_if(
      places, [](const ChunkPlace& place) { return place.bytes > 0; });
  const auto absent = static_cast<double>(chunks - stored);
  if (absent * static_cast<double>(set.chunk_bytes()) > kMostAbsentBytes &&
      absent > kMostAbsent * static_cast<double>(stored))
    refuse("only " + std::to_string(stored) + " of its " +
           std::to_string(chunks) +
           " chunks were written: its size is damaged, or must be set to that "
           "of its content (H5Dset_extent)");
  set.places = std::move(places);
}

void add_contiguous(const Json& described, std::int64_t file_bytes,
                    DataSet& set) {
  set.layout = DataSet::Layout::contiguous;
  set.offset = number(described, "offset", kMostValues);
  set.stored = number(described, "stored", kMostValues);
  if (set.stored == 0) {
    if (static_cast<double>(values_of(set.dims)) *
            static_cast<double>(set.type.bytes) >
        kMostAbsentBytes)
      refuse("the values of the data set were never written");
    return;
  }
  if (set.offset > file_bytes || set.stored > file_bytes - set.offset)
    refuse(
        "the values of the data set extend beyond the end of the file: the "
        "file was not written "
        "completely");
  if (set.stored / set.type.bytes < values_of(set.dims))
    refuse("the data set has fewer values than its header declares");
}

void add_mappings(const Json& described, DataSet& set) {
  set.layout = DataSet::Layout::mapped;
  for (const Json& one : part(described, "mappings").array()) {
    Mapping mapping{.first = number(one, "first", kMostValues),
                    .rows = number(one, "rows", kMostValues),
                    .file = text(one, "file"),
                    .path = text(one, "path"),
                    .from = number(one, "from", kMostValues)};
    if (!mapping.path.starts_with('/')) mapping.path = "/" + mapping.path;
    if (set.dims.empty() || mapping.first + mapping.rows > set.dims[0])
      refuse("the virtual data set maps rows that do not exist");
    set.mappings.push_back(std::move(mapping));
  }
  std::int64_t mapped = 0;
  for (const Mapping& mapping : set.mappings) mapped += mapping.rows;
  const std::int64_t rows = set.dims.empty() ? 1 : set.dims[0];
  const double row_bytes = static_cast<double>(values_of(set.dims)) *
                           static_cast<double>(set.type.bytes) /
                           static_cast<double>(std::max<std::int64_t>(1, rows));
  const auto absent = static_cast<double>(rows - mapped);
  if (absent * row_bytes > kMostAbsentBytes &&
      absent > kMostAbsent * static_cast<double>(mapped))
    refuse("only " + std::to_string(mapped) + " of its " +
           std::to_string(rows) + " rows are mapped: its size is damaged");
}

DataSet set_from(const Json& described, std::int64_t file_bytes,
                 std::vector<std::vector<ChunkPlace>>& chunks,
                 std::size_t& next) {
  DataSet set;
  set.path = text(described, "path");
  set.type = type_from(part(described, "type"));
  set.dims = extents(described, "dims", 0);
  set.attributes = part(described, "attributes");
  for (const Json& name : part(described, "singles").array())
    set.singles.push_back(name.string());
  const std::string layout = text(described, "layout");
  if (layout != "other") {
    set.fill = from_hexadecimal(text(described, "fill"));
    if (std::ssize(set.fill) != set.type.bytes) set.fill.clear();
  }
  if (layout == "chunked") {
    if (next >= chunks.size()) refuse("the chunks of the data set are missing");
    add_chunks(described, file_bytes, std::move(chunks[next++]), set);
  } else if (layout == "contiguous") {
    add_contiguous(described, file_bytes, set);
  } else if (layout == "compact") {
    set.layout = DataSet::Layout::compact;
    set.data = from_hexadecimal(text(described, "data"));
    if (std::ssize(set.data) / set.type.bytes < values_of(set.dims))
      refuse("the data set has fewer values than its header declares");
  } else if (layout == "virtual") {
    add_mappings(described, set);
  } else {
    set.why = text(described, "why");
  }
  return set;
}

}  // namespace

std::string ValueType::shown() const {
  const std::string bits = std::to_string(8 * bytes);
  switch (is) {
    case Is::integer:
      return (is_signed ? "int" : "uint") + bits;
    case Is::floating:
      return brain ? "bfloat16" : "float" + bits;
    case Is::boolean:
      return "bool";
    case Is::text:
    case Is::texts:
      return "text";
    case Is::list:
      return "list of " + inner[0].shown();
    case Is::bytes:
      return "bytes";
    case Is::array:
      return inner[0].shown();
    case Is::compound:
      return "compound";
    case Is::other:
      break;
  }
  return what;
}

bool lie_alike(const ValueType& a, const ValueType& b) {
  auto shape = [](const ValueType& type) {
    return std::tie(type.is, type.bytes, type.is_signed, type.big, type.brain,
                    type.blanks, type.dims, type.members, type.what);
  };
  return shape(a) == shape(b) &&
         std::ranges::equal(a.inner, b.inner, lie_alike);
}

bool is_in_heap(const ValueType& type) {
  return type.is == ValueType::Is::texts || type.is == ValueType::Is::list ||
         std::ranges::any_of(type.inner, is_in_heap);
}

std::int64_t DataSet::chunk_bytes() const {
  std::int64_t bytes = type.bytes;
  for (std::int64_t size : chunk) {
    if (size > kMostChunkBytes / bytes) return kMostChunkBytes + 1;
    bytes *= size;
  }
  return bytes;
}

const DataSet* FileIndex::find(const std::string& path) const {
  auto found = by_path.find(path);
  return found == by_path.end() ? nullptr : &sets[found->second];
}

const Json* FileIndex::attributes_of(const std::string& group) const {
  auto found = by_group.find(group);
  return found == by_group.end() ? nullptr : &groups[found->second].second;
}

FileIndex index_from(const std::string& path, std::int64_t file_bytes,
                     const std::string& json,
                     std::vector<std::vector<ChunkPlace>> chunks) {
  std::string where = path;
  try {
    const Json sent = Json::parse(json, path);
    FileIndex index;
    index.matlab = flag(sent, "matlab");
    index.base = number(sent, "base", file_bytes);
    std::size_t next = 0;
    for (const Json& set : part(sent, "data_sets").array()) {
      where = path + ", " + text(set, "path");
      index.sets.push_back(set_from(set, file_bytes, chunks, next));
    }
    for (const Json& group : part(sent, "groups").array())
      index.groups.emplace_back(text(group, "path"), part(group, "attributes"));
    for (std::size_t at = 0; at < index.sets.size(); ++at)
      index.by_path.emplace(index.sets[at].path, at);
    for (std::size_t at = 0; at < index.groups.size(); ++at)
      index.by_group.emplace(index.groups[at].first, at);
    for (const Json& one : part(sent, "skipped").array())
      index.skipped.emplace_back(text(one, "path"), text(one, "why"));
    return index;
  } catch (const std::string& why) {
    throw Error(
        ErrorKind::source,
        {.code = "hdf5.damaged",
         .what = "cannot read the HDF5 file",
         .where = where,
         .why = why,
         .next = "get an intact copy of the file, or write the file again"});
  }
}

}  // namespace penstock::hdf5
