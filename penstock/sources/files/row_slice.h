#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "penstock/base/block.h"

namespace penstock::files {

/// `rows` rows of a column from `begin` on, which borrow from it; `owner` keeps
/// it alive. Buffers are cut to what these rows use, so that bytes() says what
/// they take; of texts and lists the offsets are written again.
Column slice_of(const Column& column, std::int64_t begin, std::int64_t rows,
                const std::shared_ptr<const void>& owner);

/// The same of all columns and problems of a block; these are in the order of
/// rows.
Block slice_of(const std::shared_ptr<const Block>& block, std::int64_t begin,
               std::int64_t rows);

/// Numbers or tensors, each row of which is valid: their bytes are all of them.
bool is_plain(const Column& column);
/// Memory for `rows` rows of `item` in a plain column, which is made unless it
/// is there; null: it is there for rows of another shape.
std::byte* place_of_rows(Column& to, const Shape& item, std::int64_t rows);
/// Copies rows of a plain column to places among rows of that width.
void place_rows(const Column& from, std::span<const std::int64_t> rows,
                std::span<const std::size_t> places, std::byte* to);

/// Numbers of another column have been copied to `to`, all of them: makes null
/// what is null there, as append_null() does.
void take_nulls(const Column& from, Column& to);

/// Appends rows of `from` to `to`, whose type it has.
void append_rows(const Column& from, std::span<const std::int64_t> rows,
                 Column& to);

}  // namespace penstock::files
