#include "penstock/sources/key_parts.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace penstock {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

template <class First, class Second>
std::string key_of(First first, Second second) {
  KeyOfParts key;
  key.add(first);
  key.add(second);
  return key.key();
}

TEST(KeyParts, CanBeReadByPeople) {
  using std::string_view;
  EXPECT_EQ(key_of(std::int64_t{100}, string_view("abc")), "C100\tabc");
  EXPECT_EQ(key_of(string_view("north pole"), std::int64_t{0}),
            "north pole\tA0");
}

TEST(KeyParts, SortAsTheirColumnsDo) {
  using Key = std::pair<std::int64_t, std::string>;
  std::vector<Key> keys;
  for (std::int64_t number :
       {kLeast, kLeast + 1, std::int64_t{-1000}, std::int64_t{-999},
        std::int64_t{-10}, std::int64_t{-9}, std::int64_t{-1}, std::int64_t{0},
        std::int64_t{1}, std::int64_t{9}, std::int64_t{10}, std::int64_t{11},
        std::int64_t{99}, std::int64_t{100}, kMost - 1, kMost})
    for (const char* text :
         {"", "\x01", "\t", "\t\t", "\n", "\nz", "\x0b", " ", "!", "a", "a\t",
          "a\tb", "a\n", "a ", "ab", "b", "\xc3\xa4", "\xf0\x9f\x93\xbb"})
      keys.emplace_back(number, text);
  for (const Key& a : keys)
    for (const Key& b : keys) {
      const std::string one = key_of(a.first, std::string_view(a.second)),
                        two = key_of(b.first, std::string_view(b.second));
      EXPECT_EQ(a < b, one < two) << one << " and " << two;
      const std::string last = key_of(std::string_view(a.second), a.first),
                        next = key_of(std::string_view(b.second), b.first);
      EXPECT_EQ(std::pair(a.second, a.first) < std::pair(b.second, b.first),
                last < next)
          << last << " and " << next;
    }
}

TEST(KeyParts, AreTakenApartAgain) {
  for (std::int64_t number : {kLeast, std::int64_t{-10}, std::int64_t{-1},
                              std::int64_t{0}, std::int64_t{42}, kMost})
    for (const std::string& text : {std::string(), std::string("\0\t\n\x0b", 4),
                                    std::string("a\tb"), std::string("-A")}) {
      const std::string key = key_of(number, std::string_view(text)) + "\tend";
      KeyParts parts(key);
      EXPECT_EQ(parts.integer(), number);
      EXPECT_EQ(parts.text(), text);
      EXPECT_EQ(parts.text(), "end");
      const std::string other = key_of(std::string_view(text), number);
      KeyParts back(other);
      EXPECT_EQ(back.text(), text);
      EXPECT_EQ(back.integer(), number);
    }
}

}  // namespace
}  // namespace penstock
