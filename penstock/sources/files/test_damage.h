#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <random>
#include <string>

#include "penstock/sources/files/test_folder.h"

/// Damages files at random, for tests: reading one gives rows or an Error,
/// never anything else.
namespace penstock::files {

/// As many as PENSTOCK_TEST_DAMAGES says; a few without it.
inline int damages(int otherwise) {
  const char* wished = std::getenv("PENSTOCK_TEST_DAMAGES");
  return wished == nullptr ? otherwise : std::atoi(wished);
}

/// What disks, networks and interrupted programs do to a file.
inline std::string damaged(std::string bytes, std::mt19937_64& random) {
  auto at = [&] { return random() % (bytes.size() + 1); };
  const std::size_t blows = 1 + random() % 3;
  for (std::size_t blow = 0; blow < blows && !bytes.empty(); ++blow) {
    std::size_t begin = at();
    std::size_t size = 1 + random() % 16;
    switch (random() % 7) {
      case 0:  // a bit
        bytes[begin % bytes.size()] ^= static_cast<char>(1 << (random() % 8));
        break;
      case 1:  // a byte
        bytes[begin % bytes.size()] = static_cast<char>(random());
        break;
      case 2:  // a number that is very large or negative
        for (std::size_t i = 0; i < size && begin + i < bytes.size(); ++i)
          bytes[begin + i] = static_cast<char>(random() % 2 ? 0xff : 0x7f);
        break;
      case 3:
        bytes.resize(begin);
        break;
      case 4:
        bytes.erase(begin, size);
        break;
      case 5:
        bytes.insert(begin, std::string(size, static_cast<char>(random())));
        break;
      default:  // a piece from elsewhere
        if (begin < bytes.size())
          bytes.replace(begin, size, bytes.substr(at() % bytes.size(), size));
    }
  }
  return bytes;
}

/// Reads `columns` (none: all) of `section`, whose file at `path` is as it is
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
  std::mt19937_64 random(seed);
  int refused = 0;
  for (int time = 0; time < times; ++time) {
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
  }
  std::cout << refused << " of " << times << " damaged files were refused\n";
}

}  // namespace penstock::files
