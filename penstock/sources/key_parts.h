#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock {

/// A key of several columns as one text, which sorts by its bytes as the
/// columns do one after the other: integers as numbers, texts by their bytes.
///
///     (100, 'abc')  ->  "C100\tabc"
///
/// A tab stands between the parts. An integer is its digits after a letter that
/// says how many they are: A one, B two, ... S nineteen; a negative one is a
/// '-', a letter from Z downwards, and each digit of its amount taken from 9.
/// In a text, a byte up to '\n' is written as '\n' and 'A' plus that byte, so
/// that the tab ends it.
class KeyOfParts {
 public:
  void add(std::int64_t integer);
  void add(std::string_view text);
  const std::string& key() const { return key_; }

 private:
  void begin_part();

  std::string key_;
  bool begun_ = false;
};

/// Takes the parts of such a key one after the other, each as what it was.
class KeyParts {
 public:
  explicit KeyParts(std::string_view key) : rest_(key) {}
  std::int64_t integer();
  std::string text();

 private:
  std::string_view next();

  std::string_view rest_;
};

}  // namespace penstock
