#pragma once

#include <memory>
#include <vector>

#include "penstock/sources/files/row_file.h"
#include "penstock/sources/plugin.h"

namespace penstock::files {

/// The rows of files as a source by position: numbered over the files in their
/// order, without those that `source.where` leaves out. Chunks are those of the
/// files. Columns that folders name ("day=3") stand after the files' own.
///
/// With a condition, what it reads is read once when the source is opened, to
/// count the rows of each chunk.
///
/// Throws Error(request): source.unknown_column, source.column_type,
/// source.where; Error(source): files.schema, and what opening the files
/// throws.
std::unique_ptr<Source> open_file_source(
    const SourceSpec& spec, const std::vector<ColumnRequest>& requests,
    SourceOptions options, const FileKind& kind);

Schema read_file_schema(const SourceSpec& spec, const FileKind& kind);

/// There are no tables to be written to: Error(request), source.read_only.
[[noreturn]] std::unique_ptr<TableWriter> refuse_writing(
    const SourceSpec& spec, const std::vector<NewColumn>& columns,
    bool replace);

/// What a plugin for kinds that are made of files gives to the program, where
/// `kind_of` tells them apart.
template <const FileKind& (*kind_of)(const SourceSpec& spec)>
inline constexpr SourcePlugin kFilePlugin{
    .open_source =
        [](const SourceSpec& spec, const std::vector<ColumnRequest>& requests,
           SourceOptions options) {
          return open_file_source(spec, requests, options, kind_of(spec));
        },
    .read_schema =
        [](const SourceSpec& spec) {
          return read_file_schema(spec, kind_of(spec));
        },
    .create_table = refuse_writing};

}  // namespace penstock::files
