#pragma once

namespace penstock {

/// The key in Source::identity() of what tells a copy of the same rows from
/// another, such as the numbers of files. A store is made again for each; a
/// saved position continues with any.
inline constexpr const char* kThisCopy = "this_copy";

}  // namespace penstock
