#pragma once

#include <memory>
#include <vector>

#include "penstock/sources/sources.h"

namespace penstock::postgres {

/// The functions of the PostgreSQL part: the face of the room, for this kind.
std::unique_ptr<Source> open_table(const SourceSpec& spec,
                                   const std::vector<ColumnRequest>& requests,
                                   SourceOptions options = {});
Schema read_table_schema(const SourceSpec& spec);
std::unique_ptr<TableWriter> make_table(const SourceSpec& spec,
                                        const std::vector<NewColumn>& columns,
                                        bool replace);

}  // namespace penstock::postgres
