#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "penstock/sources/npy/mapped_array.h"

namespace penstock::npy {

/// A file within a .zip file, which a .npz file is.
struct ZipMember {
  std::string name;
  bool deflated = false;
  std::size_t begin = 0;   ///< of its bytes in the archive
  std::size_t packed = 0;  ///< how many these are
  std::size_t bytes = 0;   ///< and of the file itself
  std::uint32_t crc = 0;
};

/// The members of an archive by its central directory, also of Zip64 (PKWARE's
/// APPNOTE 6.3, 4.3). Throws Error(source): files.damaged, arrays.type for a
/// member that is encrypted or packed in another way than deflate.
std::vector<ZipMember> zip_members(std::span<const std::byte> archive,
                                   const std::string& path);

/// The first `most` bytes of a member that is deflated. Throws as above.
std::string beginning_of(std::span<const std::byte> archive,
                         const ZipMember& member, std::size_t most,
                         const std::string& place);

/// All of them, checked by their CRC.
HeldBytes unpacked(std::span<const std::byte> archive, const ZipMember& member,
                   const std::string& place);

/// The same in pieces, with at most 16 MiB of memory: all of the member is
/// unpacked once, which checks its CRC, and then as far as is needed from the
/// nearest of at most 256 marks. Throws as unpacked(), when it is called
/// and where it reads; `archive` must live as long as the readers.
OpenPieces unpacked_in_pieces(std::span<const std::byte> archive,
                              const ZipMember& member,
                              const std::string& place);

}  // namespace penstock::npy
