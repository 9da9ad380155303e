#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/dataset/table/block_parser.h"

namespace penstock {

/// The rows by ascending key: a sample's id is its place here. Integers compare
/// as numbers, text by UTF-8 bytes, uuid by bytes. Sorts on `workers` threads,
/// the caller's own among them; the result does not depend on their number.
///
/// Two rows with one key are an Error(source); `source` is for that message.
std::vector<RowRef> rows_by_key(const std::vector<ParsedBlock>& blocks,
                                const std::string& source, int workers);

/// A row that is left out has a key too, and reading rows by their keys would
/// find both: another row with such a key is an Error(source). `left_out` is
/// sorted.
void refuse_left_out_twice(const LeftOutKeys& left_out,
                           const std::vector<ParsedBlock>& blocks,
                           const std::string& source);

}  // namespace penstock
