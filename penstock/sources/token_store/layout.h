#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/file.h"
#include "penstock/base/tensor.h"
#include "penstock/sources/files/data_files.h"
#include "penstock/sources/spec.h"
#include "penstock/sources/stop.h"

namespace penstock::token_store {

/// Where the documents of a token store are.
struct Layout {
  Dtype dtype = Dtype::uint16;
  /// Of each document in the file of tokens, in bytes: documents need not stand
  /// one after the other.
  std::vector<std::int64_t> begins;
  std::vector<std::int32_t> lengths;  ///< in tokens
  std::string about;                  ///< "Megatron", for the columns
};

/// The name of the file that says where the documents of `path` end, if it is
/// there: x.idx of x.bin (Megatron), x.ds.index of x.ds (datatrove); else "".
std::string index_of(const std::string& path);

/// Finds the documents of a store:
///   x.bin with x.idx     Megatron's MMIDIDX, version 1
///   x.ds with x.ds.index  datatrove: where documents end, uint64
///   x.bin of llm.c       a header of 256 int32, magic 20240520 or 20240801
///   any other            tokens alone; `dtype` says of which width
/// In the last two a document ends behind the token `document_end`; without
/// one it is kMostTokens long, and the last what is left.
///
/// Throws Error(source), files.damaged, for a store that contradicts itself,
/// and Error(request), source.dtype, where nothing says how wide a token is.
Layout find_layout(const files::DataFile& file, const FileSettings& settings,
                   std::span<const std::byte> tokens, StopFlag stop);

inline constexpr std::int32_t kMostTokens = 1 << 20;

}  // namespace penstock::token_store
