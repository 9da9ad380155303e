#pragma once

#include "penstock/sources/arrow/scanner.h"
#include "penstock/sources/plugin.h"

namespace penstock::arrow_files {

/// Reads the kinds of the plugin by a scanner, with the same results. The first
/// one that is given is kept.
const SourcePlugin& scanning_plugin(std::shared_ptr<ArrowScanner> scanner);

}  // namespace penstock::arrow_files
