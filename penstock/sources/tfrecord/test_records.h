#pragma once

#include <string>
#include <vector>

#include "penstock/base/crc32c.h"

/// Writes TFRecord files, for tests.
namespace penstock::tfrecord {

inline std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7)
    bytes += static_cast<char>((value & 0x7F) | 0x80);
  return bytes + static_cast<char>(value);
}
inline std::string field(int number, const std::string& contents) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 2) +
         varint(contents.size()) + contents;
}
inline std::string bytes_feature(const std::vector<std::string>& values) {
  std::string list;
  for (const std::string& value : values) list += field(1, value);
  return field(1, list);
}
inline std::string floats_feature(const std::vector<float>& values) {
  return field(
      2, field(1, std::string(reinterpret_cast<const char*>(values.data()),
                              values.size() * sizeof(float))));
}
inline std::string integers_feature(const std::vector<std::int64_t>& values) {
  std::string packed;
  for (std::int64_t value : values)
    packed += varint(static_cast<std::uint64_t>(value));
  return field(3, field(1, packed));
}
inline std::string entry(const std::string& name, const std::string& feature) {
  return field(1, field(1, name) + field(2, feature));
}
/// Of entries one after the other.
inline std::string example(const std::string& entries) {
  return field(1, entries);
}

inline std::string record(const std::string& data) {
  auto with_crc = [](const std::string& bytes) {
    const std::uint32_t crc = crc32c(std::as_bytes(std::span(bytes)));
    const std::uint32_t masked = (crc >> 15 | crc << 17) + 0xA282EAD8U;
    return bytes + std::string(reinterpret_cast<const char*>(&masked), 4);
  };
  const std::uint64_t length = data.size();
  return with_crc(std::string(reinterpret_cast<const char*>(&length), 8)) +
         with_crc(data);
}

}  // namespace penstock::tfrecord
