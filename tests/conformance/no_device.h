#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace penstock::conformance {

/// Skips the test that runs, for want of a device; with PENSTOCK_REQUIRE_GPU=1
/// it fails, so that no machine with a GPU passes without one.
inline void no_device(const std::string& why) {
  const char* required = std::getenv("PENSTOCK_REQUIRE_GPU");
  if (required != nullptr && std::string_view(required) == "1")
    FAIL() << "PENSTOCK_REQUIRE_GPU=1, but " << why;
  GTEST_SKIP() << why;
}

}  // namespace penstock::conformance
