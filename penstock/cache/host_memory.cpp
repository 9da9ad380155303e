#include "penstock/cache/host_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "penstock/base/error.h"
#include "penstock/cache/shown_bytes.h"

namespace penstock {

Buffer lazy_host_memory(std::size_t bytes, Buffer grown) {
  std::size_t size = std::max<std::size_t>(bytes, 1);
  void* at = grown.data() == nullptr
                 ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                 : ::mremap(grown.data(), grown.size(), size, MREMAP_MAYMOVE);
  if (at == MAP_FAILED)
    throw Error(ErrorKind::out_of_memory,
                {.code = "memory.host",
                 .what = "cannot reserve " + shown_bytes(size) +
                         " of host memory for the data set",
                 .where = "loader.cache",
                 .why = std::strerror(errno),
                 .next = "use \"loader.cache\": \"none\""});
  grown.release();
  return Buffer(
      static_cast<std::byte*>(at), size, MemoryKind::cpu,
      [](std::byte* data, std::size_t length) { ::munmap(data, length); });
}

}  // namespace penstock
