#pragma once

// Pictures and sound for the suite of all kinds, where they can be decoded.
#include <fstream>
#include <iterator>

#include "tests/conformance/field_kind_suite.h"

namespace penstock {

/// Files as a column, again and again; one of them is damaged.
inline std::vector<Column> files(const std::vector<std::string>& names) {
  Column column{.type = ColumnType::binary};
  for (int round = 0; round < 4; ++round)
    for (const std::string& name : names) {
      std::ifstream file(PENSTOCK_TEST_DATA "/" + name, std::ios::binary);
      EXPECT_TRUE(file) << name;
      std::string bytes{std::istreambuf_iterator<char>(file), {}};
      if (round == 2) bytes.resize(bytes.size() / 2);
      column.append_text(bytes);
    }
  std::vector<Column> columns;
  columns.push_back(std::move(column));
  return columns;
}
inline std::vector<Column> pictures() {
  return files({"images/420_b.jpg", "images/rgb.png", "images/lossy.webp"});
}
inline std::vector<Column> sounds() {
  return files({"sound/stereo.wav", "sound/mono.wav"});
}

inline std::vector<FieldKindCase> media_cases() {
  return {case_of_job("image",
                      R"({"image": {"column": "a", "size": 32, "flip": 0.5,
                                    "train": "random_resized_crop"}})",
                      pictures),
          case_of_job("image_as_by_default",
                      R"({"image": {"column": "a", "size": 32}})", pictures),
          case_of_job("audio", R"({"audio": {"column": "a", "seconds": 0.1}})",
                      sounds)};
}

}  // namespace penstock
