#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <random>
#include <string>

#include "penstock/base/clock.h"
#include "penstock/base/fake/damage.h"
#include "penstock/sources/files/test_folder.h"

/// Damages files at random, for tests: reading one gives rows or an Error,
/// never anything else.
namespace penstock::files {

using penstock::damaged;
using penstock::damages;

/// Reads `columns` (none: all) of `section`, whose file at `path` is unchanged
/// and damaged `times` times. Anything that is thrown but an Error ends the
/// test. What is wrong names `path`, or `named`.
inline void read_damaged(const Json& section, const std::string& path,
                         int times, std::uint64_t seed,
                         const std::vector<std::string>& columns = {},
                         const std::string& named = {}) {
  const std::string good = TestFolder::read(path);
  const std::vector<std::string> rows = shown_rows(section, columns);
  ASSERT_FALSE(rows.empty());
  ASSERT_EQ(rows.back().find("error: "), std::string::npos) << rows.back();
  std::mt19937_64 random(damage_seed(seed));
  int refused = 0, slowest = 0;
  Nanoseconds longest{};
  for (int time = 0; time < times; ++time) {
    const Nanoseconds begun = wall_clock().now();
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        << damaged(good, random);
    SCOPED_TRACE("damage " + std::to_string(time));
    std::vector<std::string> found;
    ASSERT_NO_THROW(found = shown_rows(section, columns));
    refused += !found.empty() && found.back().starts_with("error: ");
    if (!found.empty() && found.back().starts_with("error: ")) {
      ASSERT_NE(found.back().find(named.empty() ? path : named),
                std::string::npos)
          << "it names the file: " << found.back();
    }
    const Nanoseconds took = wall_clock().now() - begun;
    if (took <= longest) continue;
    longest = took;
    slowest = time;
  }
  std::cout << refused << " of " << times << " damaged files were refused; "
            << "damage " << slowest << " took longest: " << seconds(longest)
            << " s\n";
}

}  // namespace penstock::files
