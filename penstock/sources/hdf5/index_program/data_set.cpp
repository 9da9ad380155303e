#include "penstock/sources/hdf5/index_program/data_set.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "penstock/sources/hdf5/index_program/described_type.h"
#include "penstock/sources/hdf5/index_program/handle.h"
#include "penstock/sources/hdf5/index_program/mappings.h"
#include "penstock/sources/hdf5/index_program/protocol.h"

namespace penstock::hdf5 {
namespace {

constexpr std::size_t kMostCompact = 65536;  // bytes; the format's own limit
constexpr hssize_t kMostOfAttribute = 4096;  // numbers; each row has them all

std::string hexadecimal(const std::vector<unsigned char>& bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (unsigned char byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

/// Whether values hold no places in memory once they are read. Otherwise
/// H5Dread and H5Pget_fill_value would return pointers to memory of this
/// process, which mean nothing to the engine.
bool is_flat(hid_t type) {
  return H5Tdetect_class(type, H5T_VLEN) == 0 &&
         H5Tdetect_class(type, H5T_REFERENCE) == 0 &&
         !(H5Tdetect_class(type, H5T_STRING) > 0 &&
           H5Tis_variable_str(type) > 0);
}

bool has_addresses_of_64_bits(hid_t object) {
  Handle file(H5Iget_file_id(object));
  Handle properties(H5Fget_create_plist(file));
  std::size_t address = 0, length = 0;
  return H5Pget_sizes(properties, &address, &length) >= 0 && address == 8;
}

std::string fill_of(hid_t properties, hid_t type) {
  H5D_fill_value_t status{};
  std::vector<unsigned char> value(H5Tget_size(type), 0);
  if (!is_flat(type) || value.size() > kMostCompact ||
      H5Pfill_value_defined(properties, &status) < 0 ||
      status == H5D_FILL_VALUE_UNDEFINED ||
      H5Pget_fill_value(properties, type, value.data()) < 0)
    return "";
  return hexadecimal(value);
}

// "HDF5 File Format Specification 3.0", IV.A.2.l: each filter has an id, a name
// that may be missing, and client values, which are what its decoder needs (the
// width of a value for shuffle, the level for deflate).
// False where one cannot be described: without it chunks would be decoded to
// other values.
bool add_filters(hid_t properties, Json& set) {
  set["filters"] = Json::Array{};
  const int count = H5Pget_nfilters(properties);
  if (count < 0) return false;
  for (int at = 0; at < count; ++at) {
    std::array<unsigned, 256> values{};  // the most that H5Pget_filter2 takes
    std::size_t length = values.size();
    std::array<char, 64> name{};
    unsigned flags = 0, configuration = 0;
    const H5Z_filter_t id =
        H5Pget_filter2(properties, static_cast<unsigned>(at), &flags, &length,
                       values.data(), name.size(), name.data(), &configuration);
    if (id < 0 || length > values.size()) return false;
    Json filter(Json::Object{});
    filter["id"] = static_cast<int>(id);
    filter["name"] = std::string(name.data(), ::strnlen(name.data(), 64));
    filter["values"] = Json::Array{};
    for (std::size_t v = 0; v < length; ++v)
      filter["values"].push_back(std::size_t{values[v]});
    set["filters"].push_back(std::move(filter));
  }
  return true;
}

void refuse(Json& set, const std::string& why) {
  set["layout"] = "other";
  set["why"] = why;
}

// H5Dget_offset counts from the first byte of the file: it has added the base
// address already, unlike the references into heaps. A data set to which no
// value was written may have no address; all of its values are the fill value.
void add_contiguous(hid_t id, hid_t properties, Json& set) {
  if (H5Pget_external_count(properties) > 0)
    return refuse(
        set,
        "the values of the data set are in other files (external storage)");
  const hsize_t stored = H5Dget_storage_size(id);
  const haddr_t offset = stored == 0 ? 0 : H5Dget_offset(id);
  set["layout"] = "contiguous";
  set["stored"] =
      Json(static_cast<std::int64_t>(offset == HADDR_UNDEF ? 0 : stored));
  set["offset"] =
      Json(static_cast<std::int64_t>(offset == HADDR_UNDEF ? 0 : offset));
}

void add_compact(hid_t id, hid_t type, Json& set) {
  const hsize_t bytes = H5Dget_storage_size(id);
  if (!is_flat(type) || bytes > kMostCompact)
    return refuse(set, "a compact data set of values of variable length");
  std::vector<unsigned char> data(bytes, 0);
  set["layout"] = "compact";
  if (bytes > 0 &&
      H5Dread(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data.data()) < 0)
    return refuse(set,
                  "libhdf5 cannot read the values of the compact data set");
  set["data"] = hexadecimal(data);
}

void add_chunked(hid_t properties, std::size_t rank, hid_t type, Json& set) {
  std::vector<hsize_t> chunk(rank);
  if (H5Pget_chunk(properties, static_cast<int>(rank), chunk.data()) !=
      static_cast<int>(rank))
    return refuse(set, "the number of dimensions of its chunks differs");
  set["layout"] = "chunked";
  set["chunk"] = Json::Array{};
  double bytes = static_cast<double>(H5Tget_size(type));
  for (hsize_t size : chunk) {
    set["chunk"].push_back(Json(static_cast<std::int64_t>(size)));
    bytes *= static_cast<double>(size);
  }
  if (bytes > static_cast<double>(kMostChunkBytes))
    return refuse(set, "the chunks of the data set have " +
                           std::to_string(static_cast<std::int64_t>(bytes)) +
                           " bytes each, but at most 1 GiB is supported");
  if (!add_filters(properties, set))
    refuse(set, "libhdf5 cannot read the filters of the data set");
}

Json number_of(hid_t attribute, hid_t type) {
  if (H5Tget_class(type) == H5T_FLOAT) {
    double value = 0;
    H5Aread(attribute, H5T_NATIVE_DOUBLE, &value);
    return Json(value);
  }
  // libhdf5 would make the largest int64 of a larger uint64.
  std::uint64_t large = 0;
  if (H5Tget_sign(type) == H5T_SGN_NONE && H5Tget_size(type) == 8 &&
      H5Aread(attribute, H5T_NATIVE_UINT64, &large) >= 0 && large >> 63 != 0)
    return Json(static_cast<double>(large));
  std::int64_t value = 0;
  H5Aread(attribute, H5T_NATIVE_INT64, &value);
  return Json(value);
}

Json text_of(hid_t attribute, hid_t type) {
  if (H5Tis_variable_str(type) > 0) {
    char* text = nullptr;
    Handle memory(H5Tcopy(type));
    if (H5Aread(attribute, memory, &text) < 0 || text == nullptr) return Json();
    std::string copy = text;
    H5free_memory(text);
    return Json(std::move(copy));
  }
  std::vector<char> text(H5Tget_size(type) + 1, '\0');
  if (text.size() > kMostCompact || H5Aread(attribute, type, text.data()) < 0)
    return Json();
  std::string value(text.data());
  if (H5Tget_strpad(type) == H5T_STR_SPACEPAD)
    while (value.ends_with(' ')) value.pop_back();
  return Json(std::move(value));
}

Json not_read(const char* what) {
  Json value(Json::Object{});
  value["why"] = std::string("it is an attribute that is ") + what +
                 "; single numbers, single texts and lists of up to 4096 "
                 "numbers are supported";
  return value;
}

/// A list of numbers in one dimension.
Json numbers_of(hid_t attribute, hid_t type, hid_t space) {
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  const H5T_class_t is = H5Tget_class(type);
  if (is != H5T_FLOAT && is != H5T_INTEGER)
    return not_read("neither one text nor numbers");
  if (H5Sget_simple_extent_ndims(space) != 1)
    return not_read("an array of several dimensions");
  if (count < 1 || count > kMostOfAttribute) return not_read("empty or longer");
  Json numbers(Json::Array{});
  const auto size = static_cast<std::size_t>(count);
  if (is == H5T_FLOAT) {
    std::vector<double> values(size);
    if (H5Aread(attribute, H5T_NATIVE_DOUBLE, values.data()) < 0)
      return not_read("unreadable");
    for (double value : values) numbers.push_back(Json(value));
  } else {
    std::vector<std::int64_t> values(size);
    if (H5Aread(attribute, H5T_NATIVE_INT64, values.data()) < 0)
      return not_read("unreadable");
    for (std::int64_t value : values) numbers.push_back(Json(value));
  }
  return numbers;
}

// Called by libhdf5, which is C: it always returns 0, so that one attribute
// that cannot be read does not hide the others.
herr_t add_attribute(hid_t object, const char* name, const H5A_info_t*,
                     void* to) {
  Handle attribute(H5Aopen(object, name, H5P_DEFAULT));
  if (!attribute) return 0;
  Handle type(H5Aget_type(attribute)), space(H5Aget_space(attribute));
  Json value;
  const H5T_class_t is = H5Tget_class(type);
  if (H5Sget_simple_extent_npoints(space) != 1)
    value = numbers_of(attribute, type, space);
  else if (is == H5T_FLOAT || is == H5T_INTEGER)
    value = number_of(attribute, type);
  else if (is == H5T_STRING)
    value = text_of(attribute, type);
  if (is == H5T_ENUM && H5Tget_size(type) == 1) {
    signed char small = 0;
    if (H5Aread(attribute, type, &small) >= 0) value = Json(int{small});
  }
  if (!value.is_null()) (*static_cast<Json*>(to))[name] = std::move(value);
  return 0;
}

/// Which of the attributes that unpack numbers are float32.
Json singles_of(hid_t object) {
  Json singles(Json::Array{});
  for (const char* name : {"scale_factor", "add_offset"}) {
    if (H5Aexists(object, name) <= 0) continue;
    Handle attribute(H5Aopen(object, name, H5P_DEFAULT));
    Handle type(H5Aget_type(attribute));
    if (H5Tget_class(type) == H5T_FLOAT && H5Tget_size(type) == 4)
      singles.push_back(name);
  }
  return singles;
}

}  // namespace

Json described_attributes(hid_t object) {
  Json found(Json::Object{});
  H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, add_attribute,
              &found);
  return found;
}

Json described_data_set(hid_t id, const std::string& path) {
  Handle type(H5Dget_type(id)), space(H5Dget_space(id)),
      properties(H5Dget_create_plist(id));
  Json set(Json::Object{});
  set["path"] = path;
  set["type"] = described_type(type);
  set["dims"] = Json::Array{};
  set["attributes"] = described_attributes(id);
  set["singles"] = singles_of(id);
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank < 0 || H5Sget_simple_extent_type(space) == H5S_NULL) {
    refuse(set, "the data set has no values");
    return set;
  }
  std::vector<hsize_t> dims(static_cast<std::size_t>(rank)), most(dims);
  H5Sget_simple_extent_dims(space, dims.data(), most.data());
  for (std::size_t d = 0; d < dims.size(); ++d) {
    set["dims"].push_back(Json(static_cast<std::int64_t>(dims[d])));
    if (dims[d] <= most[d]) continue;  // H5S_UNLIMITED is the largest number
    refuse(set,
           "the size of the data set is damaged: " + std::to_string(dims[d]) +
               " along dimension " + std::to_string(d) + ", of " +
               std::to_string(most[d]) + " at most");
    return set;
  }
  if (!is_flat(type) && !has_addresses_of_64_bits(id)) {
    refuse(set,
           "the data set holds values of variable length, but the file does "
           "not use "
           "64-bit addresses");
    return set;
  }
  set["fill"] = fill_of(properties, type);
  switch (H5Pget_layout(properties)) {
    case H5D_CONTIGUOUS:
      add_contiguous(id, properties, set);
      break;
    case H5D_COMPACT:
      add_compact(id, type, set);
      break;
    case H5D_CHUNKED:
      add_chunked(properties, static_cast<std::size_t>(rank), type, set);
      break;
    case H5D_VIRTUAL:
      add_mappings(properties, set);
      break;
    default:
      refuse(set, "the layout of the data set is unknown");
  }
  return set;
}

}  // namespace penstock::hdf5
