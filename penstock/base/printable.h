#pragma once

#include <string>
#include <string_view>

namespace penstock {

/// A text as a terminal, a log or a page may show it, in one line or in those
/// that it has. Names, cells and messages of servers are data of somebody
/// else's: characters that control a terminal (C0, DEL, C1) or turn the
/// direction of writing become \u001b or the like, bytes that are not UTF-8
/// become \xff. What is printable stays unchanged; applied again, nothing
/// changes. Each Error and each message of the log is made so.
std::string printable(std::string_view text);
std::string printable_lines(std::string_view text);
/// Whether printable_lines() would change nothing.
bool is_printable(std::string_view text);

}  // namespace penstock
