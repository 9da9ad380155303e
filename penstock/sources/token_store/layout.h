#pragma once

#include <cstdint>
#include <cstring>
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

/// Where the documents of a token store are: of each the byte in the file of
/// tokens at which it begins, and its tokens. They need not stand one after the
/// other.
struct Layout {
  Dtype dtype = Dtype::uint16;
  std::string about;  ///< "Megatron", for the columns
  std::vector<std::int64_t> begins = {};
  std::vector<std::int32_t> lengths = {};
  /// An index that has these numbers is mapped, and read in place instead.
  std::shared_ptr<const FileMapping> index = {};
  std::span<const std::byte> begins_there = {}, lengths_there = {};

  std::size_t documents() const {
    return index == nullptr ? lengths.size()
                            : lengths_there.size() / sizeof(std::int32_t);
  }
  std::int64_t begin(std::size_t document) const {
    return index == nullptr ? begins[document]
                            : number_at<std::int64_t>(begins_there, document);
  }
  std::int32_t length(std::size_t document) const {
    return index == nullptr ? lengths[document]
                            : number_at<std::int32_t>(lengths_there, document);
  }

 private:
  /// They are not aligned there.
  template <class Number>
  static Number number_at(std::span<const std::byte> numbers, std::size_t at) {
    Number number;
    std::memcpy(&number, numbers.data() + at * sizeof(number), sizeof(number));
    return number;
  }
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
