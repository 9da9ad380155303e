#include "penstock/sources/zarr/metadata.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>

#include "penstock/base/base64.h"
#include "penstock/base/error.h"
#include "penstock/base/file.h"
#include "penstock/base/half.h"
#include "penstock/base/with_number.h"

namespace penstock::zarr {
namespace {

using npy::damaged;

constexpr std::int64_t kMostChunk = std::int64_t{1} << 31;

bool is_there(const std::string& path) {
  std::error_code unknown;
  return std::filesystem::exists(path, unknown);
}

Json read_json(const std::string& path) {
  try {
    return Json::parse(real_files().read(path), path);
  } catch (const Error& error) {
    damaged(path, error.parts().why);
  }
}

const Json& member(const Json& object, const char* key,
                   const std::string& place) {
  const Json* found = object.is_object() ? object.find(key) : nullptr;
  if (found == nullptr)
    damaged(place, std::string("the metadata lack '") + key + "'");
  return *found;
}

const Json* maybe(const Json& object, const char* key) {
  const Json* found = object.is_object() ? object.find(key) : nullptr;
  return found == nullptr || found->is_null() ? nullptr : found;
}

std::string text_of(const Json& json, const std::string& place) {
  if (!json.is_string())
    damaged(place, "found " + json.dump() + ", expected a name");
  return json.string();
}

Shape shape_of(const Json& json, std::int64_t least, const std::string& place) {
  Shape shape;
  if (!json.is_array() || json.array().size() > 32)
    damaged(place, "found " + json.dump() + ", expected a shape");
  for (const Json& size : json.array()) {
    const auto* number = std::get_if<std::int64_t>(&size.value());
    if (number == nullptr || *number < least)
      damaged(place, "found " + json.dump() + ", expected a shape");
    shape.push_back(*number);
  }
  return shape;
}

void unread(ZarrArray& array, std::string why) {
  array.layout.info.items = files::ArrayItems::unread;
  array.layout.info.why = std::move(why);
}

/// One text of any length in each row.
void set_texts(ZarrArray& array) {
  files::ArrayInfo& info = array.layout.info;
  info.dtype = Dtype::uint8;
  info.items = files::ArrayItems::texts;
  if (info.shape.size() > 1)
    unread(array, "the rows of the array hold several texts");
}

std::size_t element_of(const Json& configuration) {
  const Json* found = maybe(configuration, "elementsize");
  const auto* size =
      found == nullptr ? nullptr : std::get_if<std::int64_t>(&found->value());
  return size == nullptr || *size < 1 || *size > 256
             ? 4
             : static_cast<std::size_t>(*size);
}

/// A codec by the name that either version has for it.
void add_codec(const std::string& name, const Json& configuration,
               std::vector<Codec>& to, ZarrArray& array) {
  static const std::map<std::string, Codec::Kind> kKinds = {
      {"gzip", Codec::Kind::gzip},      {"zlib", Codec::Kind::zlib},
      {"zstd", Codec::Kind::zstd},      {"lz4", Codec::Kind::lz4},
      {"blosc", Codec::Kind::blosc},    {"crc32c", Codec::Kind::crc32c},
      {"shuffle", Codec::Kind::shuffle}};
  std::string plain = name;
  if (plain.starts_with("numcodecs.")) plain.erase(0, 10);
  if (plain == "vlen-utf8") return;  // set_texts()
  const auto found = kKinds.find(plain);
  if (found == kKinds.end())
    return unread(array, "the chunks are compressed with '" + name +
                             "', expected blosc, zstd, gzip, zlib, lz4, "
                             "shuffle or crc32c");
  to.insert(to.begin(),
            {.kind = found->second, .element = element_of(configuration)});
}

/// A fill value of JSON, as the bytes of an element.
void set_fill(const Json* value, ZarrArray& array) {
  const Dtype dtype = array.layout.info.dtype;
  if (array.layout.info.items == files::ArrayItems::texts) {
    if (value != nullptr && value->is_string())
      array.fill_text = value->string();
    return;
  }
  array.fill.assign(array.item_bytes(), std::byte{0});
  if (value == nullptr || array.layout.info.items == files::ArrayItems::unread)
    return;
  // A double has no room for 64 bits.
  const auto* whole = std::get_if<std::int64_t>(&value->value());
  if (whole != nullptr &&
      (dtype == Dtype::int64 || (dtype == Dtype::uint64 && *whole >= 0))) {
    std::memcpy(array.fill.data(), whole, sizeof(*whole));
    return;
  }
  double number = 0;
  if (value->is_string()) {
    const std::string& text = value->string();
    if (text == "NaN") number = std::nan("");
    if (text == "Infinity") number = std::numeric_limits<double>::infinity();
    if (text == "-Infinity") number = -std::numeric_limits<double>::infinity();
  } else if (value->is_number()) {
    number = value->number();
  } else if (*value == Json(true)) {
    number = 1;
  }
  if (number == 0) return;
  if (is_half(dtype)) {
    const std::uint16_t half = to_half(dtype, static_cast<float>(number));
    std::memcpy(array.fill.data(), &half, sizeof(half));
    return;
  }
  with_number(dtype, [&]<class Number>(Typed<Number>) {
    Number own{};
    if constexpr (std::is_floating_point_v<Number>) {
      own = static_cast<Number>(number);
    } else {
      const auto least =
          static_cast<double>(std::numeric_limits<Number>::lowest());
      const auto most = static_cast<double>(std::numeric_limits<Number>::max());
      if (std::isnan(number)) return;
      own = number <= least  ? std::numeric_limits<Number>::lowest()
            : number >= most ? std::numeric_limits<Number>::max()
                             : static_cast<Number>(number);
    }
    std::memcpy(array.fill.data(), &own, sizeof(own));
  });
}

/// xarray writes a fill value of version 3 as the base64 of a little-endian
/// double: 12 characters.
std::optional<double> double_of_base64(std::string_view text) {
  if (text.size() != 12 || text[11] != '=') return std::nullopt;
  const std::optional<std::string> bytes = from_base64(text);
  double value = 0;
  if (!bytes || bytes->size() != sizeof(value)) return std::nullopt;
  std::memcpy(&value, bytes->data(), sizeof(value));
  return value;
}

/// The fill value, of numbers.
Json fill_of(const ZarrArray& array) {
  const Dtype dtype = array.layout.info.dtype;
  if (is_half(dtype)) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, array.fill.data(), sizeof(bits));
    return Json(double{from_half(dtype, bits)});
  }
  return with_number(dtype, [&]<class Number>(Typed<Number>) {
    Number number{};
    std::memcpy(&number, array.fill.data(), sizeof(number));
    if constexpr (std::is_floating_point_v<Number> ||
                  std::is_same_v<Number, std::uint64_t>)
      return Json(static_cast<double>(number));
    else
      return Json(std::int64_t{number});
  });
}

/// `masked`: the fill value is one that is missing, too. A store of version 2
/// that xarray wrote (it has _ARRAY_DIMENSIONS) keeps _FillValue in fill_value,
/// which means a missing value there. In other stores fill_value is only what
/// absent chunks hold.
void set_attributes(Json attributes, bool masked, ZarrArray& array) {
  files::ArrayInfo& info = array.layout.info;
  array.packed = {.stored = info.dtype, .dtype = info.dtype};
  if (info.items != files::ArrayItems::numbers || !attributes.is_object())
    return;
  // Of version 3 xarray writes a float as base64, to be taken as one of the
  // array's own.
  if (const Json* text = maybe(attributes, "_FillValue");
      text != nullptr && text->is_string())
    if (std::optional<double> value = double_of_base64(text->string())) {
      if (info.dtype == Dtype::float32) value = static_cast<float>(*value);
      attributes["_FillValue"] =
          std::isnan(*value) ? Json("NaN") : Json(*value);
    }
  if (masked) attributes["_FillValue"] = fill_of(array);
  array.packed = files::packed_by(attributes, {}, info.dtype, array.place);
  info.dtype = array.packed.dtype;
}

// With shards, the grid is one of shards, and each holds a whole number of
// inner chunks along every dimension. Products are checked for overflow, since
// nothing else bounds what metadata may say.
void check_chunks(ZarrArray& array, const std::string& place) {
  const Shape& shape = array.layout.info.shape;
  for (const Shape* part : {&array.chunk, &array.shard}) {
    if (part->size() != shape.size())
      damaged(place, "the chunks have " + std::to_string(part->size()) +
                         " dimensions, but the array has " +
                         std::to_string(shape.size()));
    std::int64_t bytes = static_cast<std::int64_t>(array.item_bytes());
    for (std::int64_t size : *part)
      if (__builtin_mul_overflow(bytes, size, &bytes)) bytes = kMostChunk + 1;
    if (bytes > kMostChunk && part == &array.chunk)
      unread(array, "a chunk has more than 2 GiB");
  }
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (array.shard[d] % array.chunk[d] != 0)
      damaged(place, "the shards do not consist of whole chunks");
}

/// What both versions have.
void finish(ZarrArray& array, int version, const Json* fill,
            const Json& attributes, const std::string& place) {
  files::ArrayInfo& info = array.layout.info;
  info.declared += " " + penstock::text_of(info.shape);
  check_chunks(array, place);
  set_fill(fill, array);
  if (!info.shape.empty()) info.chunk_rows = array.chunk[0];
  // xarray keeps _FillValue of version 2 as the fill value.
  set_attributes(attributes,
                 version == 2 && fill != nullptr &&
                     maybe(attributes, "_ARRAY_DIMENSIONS") != nullptr,
                 array);
  const bool text = info.items == files::ArrayItems::bytes ||
                    info.items == files::ArrayItems::letters;
  if (text) info.shape.push_back(array.layout.text_bytes);
}

// Zarr storage specification version 2: `filters` were applied in their order
// and `compressor` after them, so decoding begins with the compressor;
// add_codec() puts each one before those that are there. A chunk is the file
// "0.1" (or "0/1"), and attributes stand in .zattrs.
ZarrArray read_v2(const std::string& folder, const std::string& name) {
  const std::string place = folder + "/.zarray";
  const Json meta = read_json(place);
  ZarrArray array;
  array.place = folder;
  array.layout.info.name = name;
  array.layout.info.shape = shape_of(member(meta, "shape", place), 0, place);
  array.chunk = array.shard = shape_of(member(meta, "chunks", place), 1, place);
  const Json& dtype = member(meta, "dtype", place);
  if (dtype.is_string())
    npy::set_type(dtype.string(), array.layout);
  else
    unread(array, "the rows of the array have named fields");
  const bool fortran = text_of(member(meta, "order", place), place) == "F";
  array.order.resize(array.chunk.size());
  std::iota(array.order.begin(), array.order.end(), std::size_t{0});
  if (fortran) std::reverse(array.order.begin(), array.order.end());
  if (const Json* separator = maybe(meta, "dimension_separator"))
    array.separator = text_of(*separator, place) == "/" ? '/' : '.';
  if (const Json* filters = maybe(meta, "filters"); filters != nullptr)
    for (const Json& filter :
         filters->is_array() ? filters->array() : Json::Array()) {
      const std::string id = text_of(member(filter, "id", place), place);
      if (id == "vlen-utf8") set_texts(array);
      add_codec(id, filter, array.codecs, array);
    }
  if (const Json* packed = maybe(meta, "compressor"))
    add_codec(text_of(member(*packed, "id", place), place), *packed,
              array.codecs, array);
  const std::string attributes = folder + "/.zattrs";
  finish(array, 2, maybe(meta, "fill_value"),
         is_there(attributes) ? read_json(attributes) : Json(Json::Object{}),
         place);
  return array;
}

/// Texts of equal size, filled up with zeros.
void set_padded(const Json& type, files::ArrayItems items, std::int64_t each,
                ZarrArray& array, const std::string& place) {
  const Json& bytes =
      member(member(type, "configuration", place), "length_bytes", place);
  const auto* size = std::get_if<std::int64_t>(&bytes.value());
  if (size == nullptr || *size < 0 || *size > 1 << 26 || *size % each != 0)
    damaged(place, "found texts of " + bytes.dump() + " bytes");
  array.layout.info.items = items;
  array.layout.info.dtype = Dtype::uint8;
  array.layout.text_bytes = *size;
}

void set_type_v3(const Json& type, ZarrArray& array, const std::string& place) {
  const std::string name = type.is_string()
                               ? type.string()
                               : text_of(member(type, "name", place), place);
  files::ArrayInfo& info = array.layout.info;
  info.declared = name;
  if (name == "bool") {
    info.items = files::ArrayItems::booleans;
    info.dtype = Dtype::uint8;
  } else if (name == "string") {
    set_texts(array);
  } else if (name == "fixed_length_utf32") {
    set_padded(type, files::ArrayItems::letters, 4, array, place);
  } else if (name == "null_terminated_bytes") {
    set_padded(type, files::ArrayItems::bytes, 1, array, place);
  } else if (!dtype_from(name, info.dtype)) {
    info.dtype = Dtype::uint8;
    unread(array, "the array holds values of the type '" + name + "'");
  }
}

void read_codecs(const Json& list, ZarrArray& array, std::vector<Codec>& to,
                 const std::string& place);

void read_shards(const Json& configuration, ZarrArray& array,
                 const std::string& place) {
  array.sharded = true;
  array.chunk = shape_of(member(configuration, "chunk_shape", place), 1, place);
  read_codecs(member(configuration, "codecs", place), array, array.codecs,
              place);
  read_codecs(member(configuration, "index_codecs", place), array,
              array.index_codecs, place);
  const Json* location = maybe(configuration, "index_location");
  array.index_at_start =
      location != nullptr && text_of(*location, place) == "start";
}

void read_codecs(const Json& list, ZarrArray& array, std::vector<Codec>& to,
                 const std::string& place) {
  if (!list.is_array()) damaged(place, "the codecs are not a list");
  for (const Json& codec : list.array()) {
    const std::string name = codec.is_string()
                                 ? codec.string()
                                 : text_of(member(codec, "name", place), place);
    const Json* found = maybe(codec, "configuration");
    const Json none(Json::Object{});
    const Json& configuration = found == nullptr ? none : *found;
    if (name == "bytes") {
      const Json* endian = maybe(configuration, "endian");
      (&to == &array.codecs ? array.layout.swapped : array.index_swapped) =
          endian != nullptr && text_of(*endian, place) == "big";
    } else if (name == "transpose") {
      if (&to != &array.codecs)
        return unread(array, "the index of its shards is transposed");
      const Shape order =
          shape_of(member(configuration, "order", place), 0, place);
      std::vector<bool> seen(array.chunk.size());
      // Each transposition is one of what those before it have made.
      const std::vector<std::size_t> before = std::exchange(array.order, {});
      for (std::int64_t d : order) {
        const auto at = static_cast<std::size_t>(d);
        if (order.size() != seen.size() || at >= seen.size() || seen[at])
          damaged(place, "the dimension order is not a permutation");
        seen[at] = true;
        array.order.push_back(before[at]);
      }
    } else if (name == "sharding_indexed") {
      if (&to != &array.codecs || array.sharded || list.array().size() != 1)
        return unread(array, "the shards are nested in other shards");
      read_shards(configuration, array, place);
    } else {
      add_codec(name, configuration, to, array);
    }
  }
}

// Zarr V3, "Core specification", Array metadata: one file, zarr.json. Codecs
// are a chain: array to array (transpose), then one array to bytes (bytes,
// sharding_indexed, vlen-utf8), then bytes to bytes. Chunks are named by
// chunk_key_encoding: "c/0/1" by `default`, "0.1" by `v2`.
std::optional<ZarrArray> read_v3(const std::string& folder,
                                 const std::string& name) {
  const std::string place = folder + "/zarr.json";
  const Json meta = read_json(place);
  if (text_of(member(meta, "node_type", place), place) != "array")
    return std::nullopt;
  ZarrArray array;
  array.place = folder;
  array.layout.info.name = name;
  array.layout.info.shape = shape_of(member(meta, "shape", place), 0, place);
  set_type_v3(member(meta, "data_type", place), array, place);
  const Json& grid = member(meta, "chunk_grid", place);
  if (text_of(member(grid, "name", place), place) != "regular")
    unread(array, "the chunks do not have one shape");
  else
    array.shard = shape_of(
        member(member(grid, "configuration", place), "chunk_shape", place), 1,
        place);
  if (array.shard.empty()) array.shard = array.layout.info.shape;
  array.chunk = array.shard;
  array.order.resize(array.chunk.size());
  std::iota(array.order.begin(), array.order.end(), std::size_t{0});
  const Json& keys = member(meta, "chunk_key_encoding", place);
  const bool plain = text_of(member(keys, "name", place), place) == "default";
  array.prefix = plain ? "c" : "";
  array.separator = plain ? '/' : '.';
  if (const Json* more = maybe(keys, "configuration"))
    if (const Json* separator = maybe(*more, "separator"))
      array.separator = text_of(*separator, place) == "/" ? '/' : '.';
  if (plain) array.prefix += array.separator;
  read_codecs(member(meta, "codecs", place), array, array.codecs, place);
  const Json* attributes = maybe(meta, "attributes");
  finish(array, 3, maybe(meta, "fill_value"),
         attributes == nullptr ? Json(Json::Object{}) : *attributes, place);
  return array;
}

}  // namespace

std::size_t ZarrArray::item_bytes() const {
  if (layout.info.items == files::ArrayItems::texts) return 4;  // its length
  if (layout.text_bytes > 0) return static_cast<std::size_t>(layout.text_bytes);
  return fill.empty() ? size_of(layout.info.dtype) : fill.size();
}

std::optional<ZarrArray> read_array(const std::string& folder,
                                    const std::string& name) {
  if (is_there(folder + "/zarr.json")) return read_v3(folder, name);
  if (is_there(folder + "/.zarray")) return read_v2(folder, name);
  return std::nullopt;
}

bool is_node(const std::string& folder) {
  for (const char* file : {"/zarr.json", "/.zarray", "/.zgroup", "/.zmetadata"})
    if (is_there(folder + file)) return true;
  return false;
}

}  // namespace penstock::zarr
