#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/key.h"
#include "penstock/sources/sources.h"

/// What tests read any source with.
namespace penstock {

/// The error that `act` throws, or one that says that it threw none.
inline Error error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::internal, {.what = "nothing was thrown"});
}

/// Rows with their keys, where they have any.
struct ScannedBlock : Block {
  KeyList keys;
};

/// All rows of a source in one block.
inline ScannedBlock scan_all(Source& source) {
  ScannedBlock all;
  constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();
  source.open_reader()->scan(source.partitions(1)[0],
                             {.rows = 1 << 20, .bytes = kAny},
                             [&](KeyList& keys, Block& block) {
                               static_cast<Block&>(all) = std::move(block);
                               all.keys = std::move(keys);
                               return true;
                             });
  return all;
}

inline KeyList integer_keys(const std::vector<std::int64_t>& all) {
  KeyList keys;
  for (std::int64_t key : all) keys.append_integer(key);
  return keys;
}

/// from, from + 1, ..., to - 1.
inline KeyList integer_keys(std::int64_t from, std::int64_t to) {
  std::vector<std::int64_t> all;
  for (std::int64_t key = from; key < to; ++key) all.push_back(key);
  return integer_keys(all);
}

inline KeyList text_keys(const std::vector<std::string>& all) {
  KeyList keys(ColumnType::text);
  for (const std::string& key : all) keys.append_bytes(key);
  return keys;
}

}  // namespace penstock
