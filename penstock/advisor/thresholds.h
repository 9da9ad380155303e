#pragma once

namespace penstock {

/// Of a rate. An action that gains less is not offered.
inline constexpr double kSmallestGain = 0.02;
/// Of the rate of an accelerator that is busy (kBusy): then an action that
/// gains less is not offered.
inline constexpr double kWorthWhileBusy = 0.05;
/// Of the wall time. An accelerator that computes for longer is the limit.
inline constexpr double kBusy = 0.9;
/// What kBusy leaves: a loop that waits for longer is limited by its input.
inline constexpr double kWaits = 0.1;

}  // namespace penstock
