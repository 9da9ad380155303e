#pragma once

#include <string>

namespace penstock {

/// Opens a regular file to read it: the descriptor, or -1 and `errno`. A pipe,
/// a socket or a device, whose reader might wait forever, gives ENXIO, a folder
/// EISDIR.
int open_regular_file(const char* path);

/// What `errno` says of a file that open_regular_file() did not open.
std::string why_not_opened(int reason);

}  // namespace penstock
