#pragma once

/// Where records are read from: tables of a database, rows by position, and
/// sources that are made of other sources.
///
///     SourceSpec spec = parse_source_spec("sqlite:demo.sqlite#t", "source");
///     auto source = open_source(spec, {{.column = "x"}, {.column = "y"}});
///     auto reader = source->open_reader();
///     for (const Partition& part : source->partitions(1))
///       reader->scan(part, {.rows = 1024}, [](KeyList& keys, Block& block) {
///         std::printf("row %s: %g\n", keys.shown(0).c_str(),
///                     block.columns[0].as_float64(0));
///         return true;
///       });
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "penstock/sources/arrow/scanner.h"
#include "penstock/sources/checked_reader.h"
#include "penstock/sources/concatenated.h"
#include "penstock/sources/joined.h"
#include "penstock/sources/kinds.h"
#include "penstock/sources/memory/table_source.h"
#include "penstock/sources/source.h"
#include "penstock/sources/source_options.h"
#include "penstock/sources/source_uri.h"
#include "penstock/sources/spec.h"
#include "penstock/sources/staged.h"
#include "penstock/sources/table_writer.h"
#include "penstock/sources/this_copy.h"
#include "penstock/sources/unnamed_source.h"

namespace penstock {

/// Finds the key (where the spec leaves it open) and checks all columns.
/// `requests` lists what a block shall hold. Throws Error(source) or
/// Error(request).
std::unique_ptr<Source> open_source(const SourceSpec& spec,
                                    const std::vector<ColumnRequest>& requests,
                                    SourceOptions options = {});

/// The rows of several tables, one after the other: see `concatenated`.
std::unique_ptr<Source> open_concatenated(
    const std::vector<SourceSpec>& specs,
    const std::vector<ColumnRequest>& requests, SourceOptions options = {});

/// Two tables, joined by their keys: see `joined`. A column comes from the left
/// one where that has it.
std::unique_ptr<Source> open_joined(const SourceSpec& left,
                                    const SourceSpec& right,
                                    const std::vector<ColumnRequest>& requests,
                                    SourceOptions options = {});

/// The schema alone, for `peek` and for checking a job.
Schema read_schema(const SourceSpec& spec);

/// The source with these types, by column, where its cells look like values of
/// another one: a word in a column of numbers is then a bad cell, and the
/// column stays one of numbers. Integers and fractions are alike. For kinds
/// that guess types; a type that the source names itself stays. `schema`: of
/// the source.
SourceSpec with_column_types(
    SourceSpec spec, const Schema& schema,
    const std::vector<std::pair<std::string, std::string>>& types);

/// Makes the table `spec.table`. An existing one is an Error(request) unless
/// `replace`; a missing SQLite file is made.
std::unique_ptr<TableWriter> create_table(const SourceSpec& spec,
                                          const std::vector<NewColumn>& columns,
                                          bool replace);

}  // namespace penstock
