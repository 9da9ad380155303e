#pragma once

namespace penstock {

/// The name in Schema::left_out that stands for columns which only rows have
/// that were not looked at when the source was opened.
inline constexpr const char* kOtherColumns = "(other columns)";

}  // namespace penstock
