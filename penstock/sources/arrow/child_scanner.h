#pragma once

#include <memory>
#include <string>

#include "penstock/sources/arrow/scanner.h"

namespace penstock::arrow_files {

/// What the program does without Python in its process: the plugin reads where
/// one fits the pyarrow in the folder that PENSTOCK_ARROW_DIR names, or where
/// its own run path has Arrow's libraries; else the pyarrow of a Python that is
/// started as a child process.
std::shared_ptr<ArrowChoice> program_choice();

/// What its scanner reads by, for people: "pyarrow 20.0.0 of python3". Throws
/// as ArrowChoice::scanner().
std::string program_reads_by();

}  // namespace penstock::arrow_files
