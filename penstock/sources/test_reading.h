#pragma once

#include <cstdint>
#include <functional>
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

/// All rows of a source in one block.
inline Block scan_all(Source& source) {
  Block all;
  source.open_reader()->scan(source.partitions(1)[0], 1 << 20,
                             [&](Block& block) {
                               all = std::move(block);
                               return true;
                             });
  return all;
}

inline KeyList integer_keys(const std::vector<std::int64_t>& all) {
  Column column{.type = ColumnType::int64};
  KeyList keys(column.type);
  for (std::int64_t key : all) {
    column.append_int64(key);
    keys.append(column, column.length - 1);
  }
  return keys;
}

/// from, from + 1, ..., to - 1.
inline KeyList integer_keys(std::int64_t from, std::int64_t to) {
  std::vector<std::int64_t> all;
  for (std::int64_t key = from; key < to; ++key) all.push_back(key);
  return integer_keys(all);
}

inline KeyList text_keys(const std::vector<std::string>& all) {
  Column column{.type = ColumnType::text};
  KeyList keys(column.type);
  for (const std::string& key : all) {
    column.append_text(key);
    keys.append(column, column.length - 1);
  }
  return keys;
}

}  // namespace penstock
