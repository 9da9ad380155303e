#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

/// Damages files at random, for tests: who reads one gives something or throws
/// an Error, and does nothing else.
namespace penstock {

/// As many as PENSTOCK_TEST_DAMAGES says; a few without it.
inline int damages(int otherwise) {
  const char* wished = std::getenv("PENSTOCK_TEST_DAMAGES");
  return wished == nullptr ? otherwise : std::atoi(wished);
}

/// Of a campaign that several processes share: PENSTOCK_TEST_SEED is the
/// number of each.
inline std::uint64_t damage_seed(std::uint64_t seed) {
  const char* process = std::getenv("PENSTOCK_TEST_SEED");
  return process == nullptr ? seed
                            : seed + 1000 * std::strtoull(process, nullptr, 10);
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

}  // namespace penstock
