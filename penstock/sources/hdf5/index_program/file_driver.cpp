#include "penstock/sources/hdf5/index_program/file_driver.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace penstock::hdf5 {
namespace {

// libhdf5 hands nothing but the file to these functions, and there is one
// driver in the program.
struct State {
  std::function<void()> read;
  // Of the chunk that is looked for: how many bytes are stored, 0: none is.
  // Also heaps are read as raw data.
  hsize_t wanted = 0;
  bool seen = false;
  haddr_t offset = 0;
};
State& state() {
  static State the;
  return the;
}

struct OpenFile {
  H5FD_t common;  // first: libhdf5 writes to it
  int number;
  haddr_t end_of_addresses, end_of_file;
};
OpenFile* own(H5FD_t* file) { return reinterpret_cast<OpenFile*>(file); }
const OpenFile* own(const H5FD_t* file) {
  return reinterpret_cast<const OpenFile*>(file);
}

constexpr haddr_t kLargest = (haddr_t{1} << 62) - 1;

H5FD_t* open_file(const char* name, unsigned flags, hid_t, haddr_t) {
  if ((flags & H5F_ACC_RDWR) != 0) return nullptr;
  const int number = ::open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (number < 0) return nullptr;
  struct stat found {};
  if (::fstat(number, &found) != 0 || !S_ISREG(found.st_mode)) {
    ::close(number);
    return nullptr;
  }
  auto* file = new OpenFile();
  file->number = number;
  file->end_of_file = static_cast<haddr_t>(found.st_size);
  return &file->common;
}

herr_t close_file(H5FD_t* file) {
  ::close(own(file)->number);
  delete own(file);
  return 0;
}

int compare(const H5FD_t* a, const H5FD_t* b) {
  return a < b ? -1 : a == b ? 0 : 1;
}

herr_t query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_DEFAULT_VFD_COMPATIBLE | H5FD_FEAT_SUPPORTS_SWMR_IO;
  return 0;
}

haddr_t get_end_of_addresses(const H5FD_t* file, H5FD_mem_t) {
  return own(file)->end_of_addresses;
}
herr_t set_end_of_addresses(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  own(file)->end_of_addresses = address;
  return 0;
}
haddr_t get_end_of_file(const H5FD_t* file, H5FD_mem_t) {
  return own(file)->end_of_file;
}

// A virtual file driver is the only place where libhdf5 names the address of a
// chunk cheaply. place_of() asks for a raw chunk of a known number of bytes;
// the read of raw data with just this size is the chunk itself, and it is
// answered without I/O. All other reads (superblock, object headers, nodes of
// the chunk index) are served from the file. H5FD_read has added the base
// address, so the address that is noted counts from the first byte of the file.
herr_t read_file(H5FD_t* file, H5FD_mem_t type, hid_t, haddr_t address,
                 std::size_t size, void* buffer) {
  State& now = state();
  now.read();
  if (address > kLargest || size > kLargest - address) return -1;
  if (type == H5FD_MEM_DRAW && size == now.wanted) {
    now.seen = true;
    now.offset = address;
    return 0;
  }
  auto* to = static_cast<char*>(buffer);
  while (size > 0) {
    const ssize_t got =
        ::pread(own(file)->number, to, size, static_cast<off_t>(address));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) {  // beyond the end there are zeros, as in libhdf5's own
      std::memset(to, 0, size);
      return 0;
    }
    to += got;
    size -= static_cast<std::size_t>(got);
    address += static_cast<haddr_t>(got);
  }
  return 0;
}

herr_t write_file(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, std::size_t,
                  const void*) {
  return -1;
}

H5FD_class_t described() {
  H5FD_class_t driver{};
  driver.name = "penstock";
  driver.maxaddr = kLargest;
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.open = open_file;
  driver.close = close_file;
  driver.cmp = compare;
  driver.query = query;
  driver.get_eoa = get_end_of_addresses;
  driver.set_eoa = set_end_of_addresses;
  driver.get_eof = get_end_of_file;
  driver.read = read_file;
  driver.write = write_file;
  std::fill(std::begin(driver.fl_map), std::end(driver.fl_map),
            H5FD_MEM_DEFAULT);
  return driver;
}

}  // namespace

FileDriver::FileDriver(std::function<void()> read) {
  state().read = std::move(read);
  static const H5FD_class_t driver = described();
  driver_ = H5FDregister(&driver);
  access_ = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_driver(access_, driver_, nullptr);
  H5Pset_fclose_degree(access_, H5F_CLOSE_STRONG);
}

FileDriver::~FileDriver() {
  H5Pclose(access_);
  H5FDunregister(driver_);
}

// `skipped` is the filter mask of the chunk: bit i says that filter i of the
// pipeline was left out, because it was optional and failed or did not make the
// chunk smaller. It differs from chunk to chunk.
std::optional<ChunkPlace> FileDriver::place_of(hid_t dataset,
                                               const hsize_t* coordinates,
                                               void* buffer) {
  hsize_t bytes = 0;
  if (H5Dget_chunk_storage_size(dataset, coordinates, &bytes) < 0 ||
      bytes == 0 || bytes > hsize_t{2} * kMostChunkBytes)
    return std::nullopt;
  state().seen = false;
  state().wanted = bytes;
  std::uint32_t skipped = 0;
  const herr_t read =
      H5Dread_chunk(dataset, H5P_DEFAULT, coordinates, &skipped, buffer);
  state().wanted = 0;
  if (read < 0 || !state().seen) return std::nullopt;
  return ChunkPlace{.offset = state().offset,
                    .bytes = static_cast<std::uint32_t>(bytes),
                    .skipped = skipped};
}

}  // namespace penstock::hdf5
