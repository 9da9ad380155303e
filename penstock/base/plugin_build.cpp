#include "penstock/base/plugin_build.h"

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <vector>

#include "build_name.h"
#include "penstock/base/error.h"

namespace penstock {
namespace {

constexpr std::string_view kOwner = "penstock";
constexpr std::uint64_t kMostNotes = 1 << 16;  // bytes: ours has less than 100

template <class Part>
bool read_at(std::ifstream& file, std::uint64_t offset, Part* to,
             std::size_t count = 1) {
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(to),
            static_cast<std::streamsize>(count * sizeof(Part)));
  return file.good();
}

std::size_t rounded_up(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

/// What the note of `kOwner` holds, up to its zero; empty: none.
std::string build_in(const std::vector<char>& notes) {
  std::size_t at = 0;
  while (notes.size() - at >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data() + at, sizeof(note));
    at += sizeof(note);
    const std::size_t name = at, content = at + rounded_up(note.n_namesz);
    at = content + rounded_up(note.n_descsz);
    if (note.n_namesz > notes.size() || note.n_descsz > notes.size() ||
        at > notes.size())
      return {};
    const std::string_view owner(notes.data() + name, note.n_namesz);
    if (owner.substr(0, owner.find('\0')) != kOwner) continue;
    const std::string_view build(notes.data() + content, note.n_descsz);
    return std::string(build.substr(0, build.find('\0')));
  }
  return {};
}

}  // namespace

std::string_view own_build() { return PENSTOCK_BUILD_NAME; }

void check_core(std::string_view who, std::string_view build) {
  if (build == own_build()) return;
  throw Error(
      ErrorKind::request,
      {.code = "core.other_build",
       .what = "cannot start " + std::string(who),
       .where = "libpenstock_core.so",
       .why = "the program belongs to Penstock " + std::string(own_build()) +
              ", and " + std::string(who) + " to " + std::string(build),
       .next = "install all of Penstock from the same build"});
}

std::optional<std::string> build_of_library(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header;
  if (!read_at(file, 0, &header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN ||
      header.e_phentsize != sizeof(Elf64_Phdr))
    return std::nullopt;
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!read_at(file, header.e_phoff, segments.data(), segments.size()))
    return std::nullopt;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMostNotes) continue;
    std::vector<char> notes(segment.p_filesz);
    if (!read_at(file, segment.p_offset, notes.data(), notes.size()))
      return std::nullopt;
    if (std::string build = build_in(notes); !build.empty()) return build;
  }
  return std::string();
}

}  // namespace penstock
