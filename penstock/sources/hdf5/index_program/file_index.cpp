#include "penstock/sources/hdf5/index_program/file_index.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "penstock/sources/hdf5/index_program/data_set.h"
#include "penstock/sources/hdf5/index_program/handle.h"

namespace penstock::hdf5 {
namespace {

constexpr int kDeepest = 64;
constexpr std::size_t kMostDataSets = 4'000'000;

/// What libhdf5 says last: the function nearest to the cause.
std::string cause() {
  std::string text;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned at, const H5E_error2_t* error, void* to) -> herr_t {
        if (at == 0 && error->desc != nullptr)
          *static_cast<std::string*>(to) = error->desc;
        return 0;
      },
      &text);
  return text.empty() ? "libhdf5 gives no reason" : text;
}

/// Why an object cannot be opened.
std::string unreadable() {
  const std::string why = cause();
  if (why.find("version") == why.npos) return "the file is damaged: " + why;
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return "the file was written by a newer HDF5 than " + std::to_string(major) +
         "." + std::to_string(minor) + "." + std::to_string(release) +
         ", which reads it here (" + why +
         "): write it again with libver=(\"v108\", \"v110\") in h5py, or by "
         "h5repack --low=0 --high=2";
}

/// What libhdf5 could not read; `place` may be empty.
IndexFailure damaged(const std::string& place) {
  const std::string why = (place.empty() ? "" : place + ": ") + cause();
  if (why.find("allocation failed") != why.npos)
    return {"hdf5.memory", why,
            "the index is too large for the memory, or the file is damaged: "
            "try h5dump -H FILE"};
  return {"hdf5.damaged", why,
          "get an intact copy of the file, or write the file again"};
}

/// Refuses what another program writes, before libhdf5 fails in other words.
/// The superblock begins with the signature 89 'H' 'D' 'F' 0D 0A 1A 0A at byte
/// 0, 512, 1024, 2048 and so on (HDF5 File Format Specification 3.0, II.A):
/// what stands before it is the user block, which MATLAB uses. Byte 8 is its
/// version. Since version 3, byte 11 has the flags of consistency: bit 0, open
/// for writing; bit 2, open for SWMR writing. Versions before leave no such
/// mark, so the lock that libhdf5 takes while it writes is tried, too.
void check_writers(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    throw IndexFailure{"files.unreadable", std::strerror(errno),
                       "check the permissions of the file"};
  const bool locked =
      ::flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  bool writing = false, swmr = false;
  std::array<unsigned char, 16> head{};
  constexpr std::array<unsigned char, 8> kMark = {0x89, 'H',  'D',  'F',
                                                  '\r', '\n', 0x1a, '\n'};
  bool found = false;
  for (off_t at = 0; !found && at < (off_t{1} << 40);
       at = at == 0 ? 512 : 2 * at) {
    const ssize_t got = ::pread(file, head.data(), head.size(), at);
    if (got < 12) break;
    found = std::memcmp(head.data(), kMark.data(), kMark.size()) == 0;
    if (found && head[8] >= 3) {
      writing = (head[11] & 1) != 0;
      swmr = (head[11] & 4) != 0;
    }
  }
  ::close(file);
  if (!found)
    throw IndexFailure{"hdf5.no_hdf5",
                       "the file does not begin as HDF5 files do",
                       "check the file with h5dump -H FILE"};
  if (swmr)
    throw IndexFailure{
        "hdf5.writing",
        "another program has the file open for single-writer-multiple-reader "
        "(SWMR) writing, so its rows may change",
        "close the file in that program; if no program writes to it, remove "
        "the stale mark with h5clear -s FILE"};
  if (writing || locked)
    throw IndexFailure{"hdf5.writing",
                       "another program has the file open for writing",
                       "close the file in that program; if no program writes "
                       "to it, remove the stale mark with h5clear -s FILE"};
}

// Walks the groups depth first, by names in ascending order, so that the order
// of columns depends on the file's content alone and not on when links were
// made.
//
// Invariants: each group is entered once, by the address of its object header
// (hard links make cycles, and soft links may lead upwards); `chunked` has the
// paths of the chunked data sets in the order of "data_sets", which is how the
// engine knows which frame of chunks belongs to which of them.
class FileIndex {
 public:
  FileIndex(const std::function<void()>& progress) : progress_(progress) {
    index_["data_sets"] = Json::Array{};
    index_["groups"] = Json::Array{};
    index_["skipped"] = Json::Array{};
  }

  void add_group(hid_t group, const std::string& path, int depth) {
    progress_();
    H5O_info_t about{};
    if (H5Oget_info(group, &about) < 0) return skip(path, cause());
    if (!seen_.insert({about.fileno, about.addr}).second) return;
    if (depth > kDeepest) return skip(path, "the group is nested too deep");
    Json attributes = described_attributes(group);
    if (!attributes.object().empty() || path == "/") {
      Json one(Json::Object{});
      one["path"] = path;
      one["attributes"] = std::move(attributes);
      index_["groups"].push_back(std::move(one));
    }
    std::vector<std::string> names;
    const herr_t listed = H5Literate(
        group, H5_INDEX_NAME, H5_ITER_INC, nullptr,
        [](hid_t, const char* name, const H5L_info_t*, void* to) -> herr_t {
          static_cast<std::vector<std::string>*>(to)->emplace_back(name);
          return 0;
        },
        &names);
    if (listed < 0) throw damaged(path);
    for (const std::string& name : names)
      add_link(group, name, (path == "/" ? path : path + "/") + name, depth);
  }

  Json take(bool matlab, hsize_t base) {
    index_["matlab"] = matlab;
    index_["base"] = Json(static_cast<std::int64_t>(base));
    return std::move(index_);
  }

  std::vector<std::string> chunked;  // their paths, in the order of the index

 private:
  void skip(const std::string& path, const std::string& why) {
    Json one(Json::Object{});
    one["path"] = path;
    one["why"] = why;
    index_["skipped"].push_back(std::move(one));
  }

  void add_link(hid_t group, const std::string& name, const std::string& path,
                int depth) {
    H5L_info_t link{};
    if (H5Lget_info(group, name.c_str(), &link, H5P_DEFAULT) < 0)
      throw damaged(path);
    if (link.type != H5L_TYPE_HARD && link.type != H5L_TYPE_SOFT)
      return skip(path, "the link leads to another file: name that file");
    if (depth == 0 && name.starts_with('#')) return;  // MATLAB's own
    Handle object(H5Oopen(group, name.c_str(), H5P_DEFAULT));
    if (!object) {
      if (link.type == H5L_TYPE_SOFT)
        return skip(path, "the link leads to nothing");
      return skip(path, unreadable());
    }
    switch (H5Iget_type(object)) {
      case H5I_GROUP:
        return add_group(object, path, depth + 1);
      case H5I_DATASET:
        return add_data_set(object, path);
      default:
        break;
    }
  }

  void add_data_set(hid_t set, const std::string& path) {
    progress_();
    if (index_["data_sets"].array().size() >= kMostDataSets)
      throw IndexFailure{"hdf5.too_large",
                         "the file has more than 4,000,000 data sets",
                         "divide the file into several"};
    Json described = described_data_set(set, path);
    if (described.find("layout")->string() == "chunked")
      chunked.push_back(path);
    index_["data_sets"].push_back(std::move(described));
  }

  const std::function<void()>& progress_;
  Json index_ = Json(Json::Object{});
  std::set<std::pair<unsigned long, haddr_t>> seen_;
};

/// Room for a chunk that nobody writes to.
class Untouched {
 public:
  Untouched() {
    void* at = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    at_ = at == MAP_FAILED ? nullptr : at;
  }
  ~Untouched() {
    if (at_ != nullptr) ::munmap(at_, kBytes);
  }
  Untouched(const Untouched&) = delete;
  Untouched& operator=(const Untouched&) = delete;
  void* get() const { return at_; }

 private:
  static constexpr std::size_t kBytes =
      std::size_t{2} * static_cast<std::size_t>(kMostChunkBytes);
  void* at_ = nullptr;
};

/// The chunks of a data set, row-major over the grid that they form. Chunks at
/// the edges are stored whole, padded beyond the extent, so all chunks decode
/// to the same number of bytes. The index on disk (a B-tree of version 1 or 2,
/// an extensible or a fixed array, or none for a single chunk) is libhdf5's
/// business: this asks for each cell of the grid by its coordinates.
std::vector<ChunkPlace> chunks_of(hid_t set, const std::string& path,
                                  FileDriver& driver, void* room,
                                  const std::function<void()>& progress) {
  Handle space(H5Dget_space(set)), properties(H5Dget_create_plist(set));
  const auto rank = static_cast<std::size_t>(H5Sget_simple_extent_ndims(space));
  std::vector<hsize_t> dims(rank), chunk(rank), at(rank, 0);
  H5Sget_simple_extent_dims(space, dims.data(), nullptr);
  H5Pget_chunk(properties, static_cast<int>(rank), chunk.data());
  hsize_t count = 1;
  for (std::size_t d = 0; d < rank; ++d) {
    const hsize_t along =
        chunk[d] == 0 ? 0 : (dims[d] + chunk[d] - 1) / chunk[d];
    if (along != 0 && count > hsize_t{kMostChunks} / along)
      throw IndexFailure{"hdf5.too_large",
                         path + " has more than 67,108,864 chunks",
                         "write the file again with larger chunks (h5repack)"};
    count *= along;
  }
  std::vector<ChunkPlace> places(count);
  for (hsize_t n = 0; n < count; ++n) {
    if (n % 256 == 0) progress();
    if (auto place = driver.place_of(set, at.data(), room)) places[n] = *place;
    for (std::size_t d = rank; d-- > 0;) {
      at[d] += chunk[d];
      if (at[d] < dims[d]) break;
      at[d] = 0;
    }
  }
  return places;
}

}  // namespace

void send_index(const std::string& path, FileDriver& driver,
                const SendFrame& send, const std::function<void()>& progress) {
  check_writers(path);
  Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, driver.access()));
  if (!file) throw damaged("");
  Handle root(H5Gopen2(file, "/", H5P_DEFAULT));
  Handle creation(H5Fget_create_plist(file));
  hsize_t user_block = 0;
  H5Pget_userblock(creation, &user_block);
  FileIndex index(progress);
  index.add_group(root, "/", 0);
  bool matlab = false;
  if (user_block >= 512) {
    std::array<char, 6> head{};
    const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    matlab = opened >= 0 && ::pread(opened, head.data(), 6, 0) == 6 &&
             std::memcmp(head.data(), "MATLAB", 6) == 0;
    if (opened >= 0) ::close(opened);
  }
  // The index goes out before the chunks are looked up: of a file with millions
  // of chunks that takes the most time, and the places of one data set at a
  // time is all that this process then holds.
  send(Frame::index, index.take(matlab, user_block).dump());
  const Untouched room;
  if (room.get() == nullptr)
    throw IndexFailure{"hdf5.memory",
                       "there is not enough memory for the index of the file",
                       "raise the limit on address space (ulimit -v)"};
  for (const std::string& name : index.chunked) {
    Handle set(H5Dopen2(file, name.c_str(), H5P_DEFAULT));
    if (!set) throw damaged(name);
    const std::vector<ChunkPlace> places =
        chunks_of(set, name, driver, room.get(), progress);
    send(Frame::chunks, {reinterpret_cast<const char*>(places.data()),
                         places.size() * sizeof(ChunkPlace)});
  }
}

}  // namespace penstock::hdf5
