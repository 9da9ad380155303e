#include "penstock/sources/hdf5/index_program/mappings.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penstock/sources/hdf5/index_program/handle.h"

namespace penstock::hdf5 {
namespace {

/// Rows that a selection names: some in a row, each of them whole.
struct Rows {
  std::int64_t first = 0, count = 0;
};

std::optional<Rows> rows_of(hid_t space) {
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank < 1) return std::nullopt;
  const auto n = static_cast<std::size_t>(rank);
  std::vector<hsize_t> dims(n), start(n), end(n);
  if (H5Sget_simple_extent_dims(space, dims.data(), nullptr) != rank ||
      H5Sget_select_bounds(space, start.data(), end.data()) < 0)
    return std::nullopt;
  hsize_t selected = 1;
  for (std::size_t at = 0; at < n; ++at) {
    if (at > 0 && (start[at] != 0 || end[at] + 1 != dims[at]))
      return std::nullopt;
    selected *= end[at] - start[at] + 1;
  }
  // As many values as the box holds: it has no holes.
  if (H5Sget_select_npoints(space) != static_cast<hssize_t>(selected))
    return std::nullopt;
  return Rows{static_cast<std::int64_t>(start[0]),
              static_cast<std::int64_t>(end[0] - start[0] + 1)};
}

template <class Get>
std::string name_by(Get get) {
  const ssize_t length = get(nullptr, 0);
  if (length < 0) return "";
  std::string name(static_cast<std::size_t>(length) + 1, '\0');
  get(name.data(), name.size());
  name.resize(static_cast<std::size_t>(length));
  return name;
}

}  // namespace

void add_mappings(hid_t properties, Json& set) {
  set["layout"] = "virtual";
  set["mappings"] = Json::Array{};
  std::size_t count = 0;
  H5Pget_virtual_count(properties, &count);
  for (std::size_t at = 0; at < count; ++at) {
    Handle here(H5Pget_virtual_vspace(properties, at));
    Handle there(H5Pget_virtual_srcspace(properties, at));
    const std::optional<Rows> to = rows_of(here);
    // All of the other data set is kept without its shape, which other
    // functions than this one do not expect.
    const bool all = H5Sget_select_type(there) == H5S_SEL_ALL;
    const std::optional<Rows> from =
        all && to ? std::optional(Rows{0, to->count}) : rows_of(there);
    const std::string file = name_by([&](char* name, std::size_t size) {
      return H5Pget_virtual_filename(properties, at, name, size);
    });
    const std::string path = name_by([&](char* name, std::size_t size) {
      return H5Pget_virtual_dsetname(properties, at, name, size);
    });
    if (!to || !from || to->count != from->count ||
        // In these names "%b" stands for the number of a block in an unlimited
        // selection (H5Pset_virtual), one mapping for any number of files.
        file.find('%') != file.npos || path.find('%') != path.npos) {
      set["layout"] = "other";
      set["why"] = "the virtual data set maps something other than whole rows";
      return;
    }
    Json mapping(Json::Object{});
    mapping["first"] = to->first;
    mapping["rows"] = to->count;
    mapping["file"] = file;
    mapping["path"] = path;
    mapping["from"] = from->first;
    set["mappings"].push_back(std::move(mapping));
  }
}

}  // namespace penstock::hdf5
