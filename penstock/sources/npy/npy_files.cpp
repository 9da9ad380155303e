#include "penstock/sources/npy/npy_files.h"

#include <strings.h>

#include <algorithm>
#include <map>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/formatted.h"
#include "penstock/base/host_limits.h"
#include "penstock/sources/files/array_file.h"
#include "penstock/sources/files/mapped_file.h"
#include "penstock/sources/npy/safetensors.h"
#include "penstock/sources/npy/zip.h"

namespace penstock::npy {
namespace {

using files::MappedFile;
using Arrays = std::vector<std::shared_ptr<const files::RowArray>>;

bool ends_with(const std::string& path, const char* end) {
  const std::size_t length = std::char_traits<char>::length(end);
  return path.size() >= length &&
         ::strcasecmp(path.c_str() + path.size() - length, end) == 0;
}

/// An array that lies unchanged in `bytes`, the file that holds it.
void add_array(ArrayLayout layout, std::span<const std::byte> bytes,
               const MappedFile& file, const std::string& place, Arrays& to) {
  if (layout.info.shape.empty()) return;  // a single value has no rows
  std::span<const std::byte> data;
  if (layout.info.items != files::ArrayItems::unread) {
    const auto size = bytes_of(layout.info);
    if (!size || layout.begin > bytes.size() ||
        *size > bytes.size() - layout.begin)
      damaged(place, "its array (" + layout.info.declared + ") needs more " +
                         "bytes than the " + std::to_string(bytes.size()) +
                         " that there are");
    data = bytes.subspan(layout.begin, *size);
  }
  to.push_back(make_mapped_array(std::move(layout),
                                 {.bytes = data, .owner = file.owner()}));
}

/// What may be unpacked into memory as a whole, of all files of a source.
class Room {
 public:
  Room() {
    const std::size_t free =
        read_host_limits().memory_free.value_or(8 * kMostKept);
    left_ = std::min(kMostKept, free / 8);
    most_at_once_ = free / 4;
  }
  bool take(std::size_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }
  /// Of one array that cannot be read in pieces.
  std::size_t most_at_once() const { return most_at_once_; }

 private:
  static constexpr std::size_t kMostKept = std::size_t{1} << 30;
  std::size_t left_ = 0, most_at_once_ = 0;
};

std::string shown_gib(std::size_t bytes) {
  return formatted("%.2f GiB", static_cast<double>(bytes) / (1 << 30));
}

/// Why an array, or a row of one, cannot be held in memory; empty: it can.
std::string why_too_large(const char* what, std::size_t bytes,
                          const Room& room) {
  if (bytes <= room.most_at_once()) return {};
  return std::string(what) + " has " + shown_gib(bytes) +
         " when unpacked, but at most " + shown_gib(room.most_at_once()) +
         " (a quarter of the free memory) can be held at once; arrays in C "
         "order that numpy.save wrote need no unpacking";
}

void add_packed(const ZipMember& member, const std::string& name,
                const MappedFile& file, const std::string& place, Room& room,
                Arrays& to) {
  constexpr std::size_t kHeader = 1 << 17;
  const std::string beginning =
      beginning_of(file.bytes(), member, kHeader, place);
  ArrayLayout layout =
      read_npy_header(std::as_bytes(std::span(beginning)), name, place);
  if (layout.info.shape.empty()) return;
  const auto size = bytes_of(layout.info);
  if (layout.info.items != files::ArrayItems::unread &&
      (!size || layout.begin > member.bytes ||
       *size > member.bytes - layout.begin))
    damaged(place, "its array (" + layout.info.declared + ") needs more " +
                       "bytes than the " + std::to_string(member.bytes) +
                       " that there are");
  const bool turned = layout.fortran && layout.info.shape.size() > 1;
  const bool in_pieces = !room.take(member.bytes) && !turned;
  files::ArrayInfo& info = layout.info;
  if (info.items != files::ArrayItems::unread)
    info.why = in_pieces ? why_too_large("a row of it", info.row_bytes(), room)
                         : why_too_large("it", member.bytes, room);
  if (!info.why.empty()) info.items = files::ArrayItems::unread;
  if (in_pieces) {
    to.push_back(make_pieced_array(layout, [file, member, place] {
      OpenPieces open = unpacked_in_pieces(file.bytes(), member, place);
      return [file, open] { return open(); };
    }));
    return;
  }
  to.push_back(
      make_unpacked_array(layout, [file, member, place, begin = layout.begin] {
        HeldBytes held = unpacked(file.bytes(), member, place);
        held.bytes = held.bytes.subspan(begin);
        return held;
      }));
}

Arrays arrays_of_npz(const files::DataFile& data, Room& room) {
  const MappedFile file(data);
  Arrays all;
  const std::vector<ZipMember> members = zip_members(file.bytes(), data.path);
  std::map<std::string, std::vector<std::size_t>> places;
  for (std::size_t at = 0; at < members.size(); ++at)
    places[members[at].name].push_back(at + 1);
  for (const ZipMember& member : members) {
    if (!ends_with(member.name, ".npy")) continue;
    const std::string name = member.name.substr(0, member.name.size() - 4);
    const std::string place = data.path + ", member '" + member.name + "'";
    if (const auto& same = places[member.name]; same.size() > 1)
      files::refuse_array(data.path, name,
                          "members " + std::to_string(same[0]) + " and " +
                              std::to_string(same[1]) + " have this name");
    if (member.deflated) {
      add_packed(member, name, file, place, room, all);
      continue;
    }
    const auto bytes = file.bytes().subspan(member.begin, member.bytes);
    add_array(read_npy_header(bytes, name, place), bytes, file, place, all);
  }
  return all;
}

void add_npy(const files::DataFile& data, const std::string& name, Arrays& to) {
  const MappedFile file(data);
  ArrayLayout layout = read_npy_header(file.bytes(), name, data.path);
  if (layout.info.shape.empty())
    files::refuse_array(data.path, name,
                        "the array is a single value, without rows");
  add_array(std::move(layout), file.bytes(), file, data.path, to);
}

Arrays arrays_of(const files::DataFile& data, Room& room) {
  if (ends_with(data.path, ".npz")) return arrays_of_npz(data, room);
  Arrays all;
  if (!ends_with(data.path, ".safetensors")) {
    add_npy(data, "array", all);
    return all;
  }
  const MappedFile file(data);
  for (ArrayLayout& layout : read_safetensors(file.bytes(), data.path))
    add_array(std::move(layout), file.bytes(), file, data.path, all);
  return all;
}

}  // namespace

std::vector<files::DataFile> find_arrays(const SourceSpec& spec,
                                         const SourceKind& kind) {
  const FileSettings& settings = file_settings_of(spec);
  if (settings.arrays.empty()) return files::find_files(spec, kind);
  std::vector<std::vector<files::DataFile>> columns;
  for (const auto& [name, file] : settings.arrays) {
    SourceSpec one;
    one.path = paths_of(spec)[0] + "/" + file;
    one.own = FileSettings();
    columns.push_back(files::find_files(one, kind));
    if (columns.back().size() != columns.front().size())
      throw Error(
          ErrorKind::request,
          {.code = "arrays.files",
           .what = "cannot read these arrays side by side",
           .where = "source.arrays." + name,
           .why = "the entry names " + std::to_string(columns.back().size()) +
                  " files, but '" + settings.arrays[0].first + "' names " +
                  std::to_string(columns.front().size()),
           .next = "name the same number of files for each column"});
  }
  std::vector<files::DataFile> all;
  for (std::size_t part = 0; part < columns.front().size(); ++part)
    for (auto& column : columns) all.push_back(std::move(column[part]));
  return all;
}

std::vector<std::shared_ptr<const files::RowFile>> open_arrays(
    const SourceSpec& spec, const std::vector<files::DataFile>& data,
    StopFlag stop) {
  const auto& columns = file_settings_of(spec).arrays;
  std::vector<std::shared_ptr<const files::RowFile>> all;
  Room room;
  for (std::size_t at = 0; at < data.size();) {
    end_if_stopped(stop);
    if (columns.empty()) {
      all.push_back(
          files::make_array_file(data[at].path, arrays_of(data[at], room)));
      ++at;
      continue;
    }
    Arrays arrays;
    for (std::size_t c = 0; c < columns.size(); ++c)
      add_npy(data[at + c], columns[c].first, arrays);
    all.push_back(files::make_array_file(data[at].path, std::move(arrays)));
    for (std::size_t c = 1; c < columns.size(); ++c)
      all.push_back(files::make_empty_file(*all[at]));
    at += columns.size();
  }
  return all;
}

}  // namespace penstock::npy
