#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/dataset/dataset.h"

namespace penstock {

/// Throws Error(request), code export.format, for a format that
/// export_tokens() does not write.
void check_token_export(const std::string& format);

/// Writes the documents of a job's field of tokens, in order of sample id, into
/// a folder that is made if it is not there, as another program reads them:
///   hf        a folder that load_from_disk() of `datasets` reads, a document a
///             row of `input_ids`
///   megatron  DIR/tokens.bin and DIR/tokens.idx
///   datatrove DIR/tokens.ds and DIR/tokens.ds.index
///   llmc      DIR/tokens.bin with the header of llm.c
///   raw       DIR/tokens.bin without any, and DIR/tokens.json that says what
///             is in it
/// Files are written whole or not at all. Gives "format", "dir", "documents",
/// "tokens", "bytes". Throws Error(request): export.format, export.no_tokens
/// where the rows hold none, export.too_many for more tokens than llm.c counts
/// and for ids that do not fit into int32.
Json export_tokens(const Dataset& rows, const std::string& format,
                   const std::filesystem::path& dir);

}  // namespace penstock
