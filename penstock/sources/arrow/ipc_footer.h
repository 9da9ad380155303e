#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::arrow_files {

/// What the footer of an Arrow IPC file says.
struct IpcFooter {
  /// Where a message lies in the file.
  struct Block {
    std::int64_t offset;    ///< of its header
    std::int32_t metadata;  ///< bytes of that header
  };
  std::string schema;  ///< the header of a message that holds it
  std::vector<Block> dictionaries, batches;
};

/// `bytes` is the footer, a flatbuffer (File.fbs of Arrow's format). Nullopt
/// where its parts do not lie in it. What a block says is not checked.
std::optional<IpcFooter> read_footer(std::string_view bytes);

}  // namespace penstock::arrow_files
