#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>

#include "penstock/base/json.h"
#include "penstock/base/user_file.h"

/// The pictures of tests/data/images, and what Pillow makes of them.
namespace penstock::test_pictures {

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

struct Golden {
  explicit Golden(const std::filesystem::path& folder)
      : json(Json::parse(
            read_user_file((folder / "golden.json").string(), "cannot read"),
            "golden.json")) {
    for (const auto& [name, of] : json.find("files")->object())
      files.emplace(name, read_file(folder / name));
  }
  const Json& of(const std::string& name) const {
    return *json.find("files")->find(name);
  }

  Json json;
  std::map<std::string, std::string> files;  // by name: their bytes
};

}  // namespace penstock::test_pictures
