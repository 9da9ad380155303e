#include "penstock/sources/arrow/ipc_footer.h"

#include <cstddef>
#include <cstring>
#include <stdexcept>

#include "penstock/sources/arrow/flatbuffer.h"

// All distances in a flatbuffer are relative, so that the schema stays where it
// is in the footer when a message is put in front of that.

namespace penstock::arrow_files {
namespace {

/// Of a field that is a vector of blocks: (int64 offset, int32 metadata,
/// int64 body), each in 8 bytes.
std::vector<IpcFooter::Block> blocks_of(const Flatbuffer& footer,
                                        std::size_t field) {
  std::vector<IpcFooter::Block> blocks;
  if (field == 0) return blocks;
  constexpr std::size_t kBlock = 24;
  const std::size_t vector = footer.follow(field);
  const auto count = footer.number<std::uint32_t>(vector);
  for (std::size_t at = vector + 4; blocks.size() < count; at += kBlock) {
    footer.number<std::int64_t>(at + kBlock - 8);  // all of it is there
    blocks.push_back(
        {footer.number<std::int64_t>(at), footer.number<std::int32_t>(at + 8)});
  }
  return blocks;
}

/// The table `Message` of a schema, which is `schema` bytes behind it. Arrow's
/// library reads a schema only from a message, and the footer has a bare table
/// (format/File.fbs, Footer.schema; format/Message.fbs). So the few bytes of a
/// message are written in front of the whole footer, and its `header` points to
/// the schema there.
std::string message_before(std::int16_t version, std::size_t schema) {
  constexpr std::size_t kSize = 32, kList = 4, kTable = 16, kHeader = 24;
  constexpr std::uint8_t kIsSchema = 1;
  std::string bytes(kSize, '\0');
  auto put = [&](std::size_t at, auto number) {
    std::memcpy(bytes.data() + at, &number, sizeof(number));
  };
  put(0, static_cast<std::uint32_t>(kTable));
  put(kList, std::uint16_t{10});  // its own size, the table's, three fields
  put(kList + 2, std::uint16_t{12});
  put(kList + 4, std::uint16_t{4});
  put(kList + 6, std::uint16_t{6});
  put(kList + 8, static_cast<std::uint16_t>(kHeader - kTable));
  put(kTable, static_cast<std::int32_t>(kTable - kList));
  put(kTable + 4, version);
  put(kTable + 6, kIsSchema);
  put(kHeader, static_cast<std::uint32_t>(kSize + schema - kHeader));
  return bytes;
}

}  // namespace

std::optional<IpcFooter> read_footer(std::string_view bytes) try {
  enum { kVersion, kSchema, kDictionaries, kBatches };
  const Flatbuffer footer(bytes);
  const std::size_t root = footer.follow(0);
  const std::size_t version = footer.field(root, kVersion);
  const std::size_t schema = footer.field(root, kSchema);
  if (schema == 0) return std::nullopt;
  return IpcFooter{
      .schema =
          message_before(version == 0 ? std::int16_t{0}
                                      : footer.number<std::int16_t>(version),
                         footer.follow(schema))
              .append(bytes),
      .dictionaries = blocks_of(footer, footer.field(root, kDictionaries)),
      .batches = blocks_of(footer, footer.field(root, kBatches))};
} catch (const std::out_of_range&) {
  return std::nullopt;
}

}  // namespace penstock::arrow_files
