#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "penstock/base/log.h"
#include "penstock/sources/files/open_file.h"
#include "penstock/sources/images/find_pictures.h"
#include "penstock/sources/images/tar_samples.h"

// A tar file is a row of members, each a header of 512 bytes and its contents,
// filled up to a multiple of 512. Only headers are read here. Long names stand
// in a member before: GNU's 'L', or "path=" of POSIX's 'x'.

namespace penstock::images {
namespace {

constexpr std::int64_t kBlock = 512;
constexpr std::int64_t kMostText = 1 << 20;  // of a long name, of a class

using Header = std::array<char, kBlock>;

std::string_view text_of(const Header& header, std::size_t at,
                         std::size_t size) {
  const std::string_view whole(header.data() + at, size);
  return whole.substr(0, whole.find('\0'));
}

/// A number in octal digits, or, where its first bit is set, in binary. GNU
/// tar's base-256: the top bit of the first byte is set, and the number follows
/// big-endian; of its 12 bytes the last 8 are enough for any file. Octal digits
/// may be surrounded by blanks and end with a blank or zero.
std::optional<std::int64_t> number_of(const Header& header, std::size_t at,
                                      std::size_t size) {
  if ((static_cast<unsigned char>(header[at]) & 0x80U) != 0) {
    std::uint64_t value = 0;
    for (std::size_t i = at + size - 8; i < at + size; ++i)
      value = value << 8 | static_cast<unsigned char>(header[i]);
    if (value > std::uint64_t{1} << 62) return std::nullopt;
    return static_cast<std::int64_t>(value);
  }
  std::string_view digits = text_of(header, at, size);
  while (digits.starts_with(' ')) digits.remove_prefix(1);
  while (digits.ends_with(' ')) digits.remove_suffix(1);
  if (digits.empty()) return 0;
  std::int64_t value = 0;
  auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 0)
    return std::nullopt;
  return value;
}

// POSIX.1-2017, pax, "ustar Interchange Format": the sum of all bytes of the
// header, unsigned, with its own eight bytes taken as blanks.
bool has_checksum(const Header& header) {
  constexpr std::size_t kAt = 148, kSize = 8;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < header.size(); ++i)
    sum += i >= kAt && i < kAt + kSize ? ' '
                                       : static_cast<unsigned char>(header[i]);
  return number_of(header, kAt, kSize) == sum;
}

// Fields of a header that are used, by offset and size:
//   0/100 name       124/12 size      148/8 checksum    156/1 type
//   257/6 "ustar"    345/155 prefix, which stands before the name and a '/'
// GNU's magic is "ustar" and two blanks; in place of the prefix it has other
// fields, which are empty but in incremental archives. Blocks of zeros end it.
// Complexity: one pread of 512 bytes for each member.
class Tar {
 public:
  Tar(const std::string& path, const Media& media, StopFlag stop)
      : path_(path), media_(media), stop_(stop), file_(files::open_file(path)) {
    if (!file_)
      refuse("files.unreadable", path, why_not_opened(errno),
             "check the permissions of the file");
    struct stat found {};
    ::fstat(file_.number(), &found);
    bytes_ = found.st_size;
    if (bytes_ < kBlock)
      fail("the file is not a tar file: it has " + std::to_string(bytes_) +
           " bytes, but a single member takes " + std::to_string(kBlock));
  }

  /// Calls `take` with the name, begin and size of every file in it.
  template <class Take>
  void walk(Take take) {
    std::string long_name, last;
    std::int64_t long_size = -1;  // of a pax header; -1: it has none
    std::int64_t at = 0;
    while (at + kBlock <= bytes_) {
      end_if_stopped(stop_);
      Header header;
      read(at, std::span(header));
      if (std::ranges::all_of(header, [](char c) { return c == '\0'; })) return;
      std::optional<std::int64_t> size = number_of(header, 124, 12);
      if (long_size >= 0) size = std::exchange(long_size, -1);
      if (!has_checksum(header) || !size)
        fail("the member at byte " + std::to_string(at) +
             " has a damaged header");
      const std::int64_t begin = at + kBlock;
      std::string name =
          long_name.empty() ? short_name(header) : std::move(long_name);
      long_name.clear();
      if (*size > bytes_ - begin)
        fail("the member '" + name + "' is cut off: it has " +
             std::to_string(*size) + " bytes, of which " +
             std::to_string(bytes_ - begin) + " are present");
      last = name;
      const char type = header[156];
      if (type == 'L')
        long_name = text(begin, *size);
      else if (type == 'x')
        read_records(whole_text(begin, *size), long_name, long_size);
      else if (type == '0' || type == '\0')
        take(std::move(name), begin, *size);
      else if ((type == '1' || type == '2') && is_picture_name(name, media_))
        refuse("images.tar", path_,
               "the member '" + name +
                   "' is a link to another member, and links are not followed",
               std::string("write it with tar's option --") +
                   (type == '1' ? "hard-dereference" : "dereference"));
      at = begin + (*size + kBlock - 1) / kBlock * kBlock;
    }
    if (at != bytes_)
      fail("the file is cut off at byte " + std::to_string(bytes_) +
           ", after member '" + last + "'");
    // Some programs write none.
    log(LogLevel::warning, path_ + " has no end mark after '" + last +
                               "': if it was cut off there, members are "
                               "missing");
  }
  std::string text(std::int64_t begin, std::int64_t size) const {
    std::string text(static_cast<std::size_t>(std::min(size, kMostText)), '\0');
    read(begin, std::span(text));
    return text.substr(0, text.find('\0'));
  }

 private:
  std::string whole_text(std::int64_t begin, std::int64_t size) const {
    std::string text(static_cast<std::size_t>(std::min(size, kMostText)), '\0');
    read(begin, std::span(text));
    return text;
  }
  void read(std::int64_t at, std::span<char> to) const {
    const std::string why = files::read_at(file_, at, to);
    if (!why.empty()) fail(why);
  }
  [[noreturn]] void fail(std::string why) const {
    refuse("images.tar", path_, std::move(why),
           "get an intact copy of the file");
  }
  static std::string short_name(const Header& header) {
    const std::string_view prefix = text_of(header, 345, 155);
    const bool posix = text_of(header, 257, 6) == "ustar";
    std::string name(posix ? prefix : std::string_view());
    if (!name.empty()) name += '/';
    return name.append(text_of(header, 0, 100));
  }
  /// Records are "LENGTH KEY=VALUE\n", LENGTH of the whole record in decimal,
  /// and a value may hold any byte. POSIX.1-2017, pax, "pax Header Block": such
  /// a header holds for the next member alone; a path in it overrides name and
  /// prefix, and a size that of the header, which has 8 GiB at most in octal.
  void read_records(std::string_view records, std::string& path,
                    std::int64_t& size) const {
    while (!records.empty() && records[0] != '\0') {
      std::size_t length = 0;
      auto [at, error] = std::from_chars(
          records.data(), records.data() + records.size(), length);
      const auto head = static_cast<std::size_t>(at - records.data());
      if (error != std::errc() || length > records.size() ||
          length < head + 3 || records[head] != ' ' ||
          records[length - 1] != '\n')
        fail("a pax header has a damaged record");
      const std::string_view record =
          records.substr(head + 1, length - head - 2);
      const std::string_view key = record.substr(0, record.find('='));
      const std::string_view value =
          record.substr(std::min(record.size(), key.size() + 1));
      if (key == "path") path = value;
      if (key == "size") size = size_in(value);
      records.remove_prefix(length);
    }
  }
  std::int64_t size_in(std::string_view text) const {
    std::int64_t size = 0;
    auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || end != text.data() + text.size() || size < 0)
      fail("a pax header gives '" + std::string(text) + "' as size");
    return size;
  }

  const std::string path_;
  const Media& media_;
  const StopFlag stop_;
  const Descriptor file_;
  std::int64_t bytes_ = 0;
};

}  // namespace

void UnreadMembers::add(const std::string& name) {
  constexpr std::size_t kMostKinds = 4;
  ++members;
  if (kinds.size() < kMostKinds)
    kinds.emplace(std::filesystem::path(name).extension().string(), name);
}

std::string UnreadMembers::told(const std::string& path,
                                const Media& media) const {
  if (members == 0) return {};
  std::string names;
  for (const auto& [kind, name] : kinds)
    names += (names.empty() ? "'" : ", '") + name + "'";
  return path + ": " + std::to_string(members) +
         (members == 1 ? " member is" : " members are") + " not read, " +
         names + (members == 1 ? "" : " among them") + ": only " + media.one +
         "s and classes in '.cls' members are read from tar files; to read "
         "other members, unpack the files and name them in a table";
}

std::vector<FoundPicture> pictures_in_tar(
    const std::string& path, const std::string& prefix, std::int32_t container,
    const Media& media, const std::vector<std::string>& declared,
    UnreadMembers& unread, StopFlag stop) {
  Tar tar(path, media, stop);
  const DeclaredClasses allowed(declared);
  std::vector<FoundPicture> all;
  std::map<std::string, std::string, std::less<>> classes;  // by sample
  std::set<std::string, std::less<>> others;  // samples with other members
  tar.walk([&](std::string name, std::int64_t begin, std::int64_t size) {
    while (name.starts_with("./")) name.erase(0, 2);
    if (name.ends_with(".cls")) {
      std::string text = tar.text(begin, size);
      while (text.ends_with('\n') || text.ends_with(' ')) text.pop_back();
      others.emplace(sample_of(name));
      classes[std::string(sample_of(name))] = std::move(text);
    } else if (is_picture_name(name, media)) {
      FoundPicture& picture = all.emplace_back();
      picture.member = {.container = container, .begin = begin, .bytes = size};
      picture.name = std::move(name);
    } else {
      others.emplace(sample_of(name));
      unread.add(name);
    }
  });
  check_samples(path, media, all, others);
  for (FoundPicture& picture : all) {
    const auto found = classes.find(sample_of(picture.name));
    const std::string folder =
        std::filesystem::path(picture.name).parent_path().filename().string();
    picture.in_folder = found == classes.end() && !folder.empty();
    picture.has_class = found != classes.end() || picture.in_folder;
    picture.of_class = found != classes.end() ? found->second : folder;
    if (picture.has_class)
      allowed.check(picture.of_class, path + ", member '" + picture.name + "'");
    picture.name = prefix + picture.name;
  }
  return all;
}

}  // namespace penstock::images
