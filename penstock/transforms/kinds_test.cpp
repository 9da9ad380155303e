#include "penstock/transforms/kinds.h"

#include <set>

#include "penstock/transforms/fake/letters.h"
#include "penstock/transforms/fake/noisy.h"
#include "penstock/transforms/fake/strip.h"
#include "tests/conformance/field_kind_suite.h"
#ifdef PENSTOCK_TEST_DATA  // pictures and sound are built
#include "penstock/transforms/fake/media_cases.h"
#endif

// All kinds.

namespace penstock {
namespace {

constexpr std::int64_t kRows = 2500;

using Texts = std::function<std::string(std::int64_t row)>;
using Numbers64 = std::function<double(std::int64_t row)>;

/// Every 97th row has none.
Column texts(const Texts& text_of, bool nulls = true) {
  Column column{.type = ColumnType::text};
  for (std::int64_t row = 0; row < kRows; ++row)
    nulls&& row % 97 == 50 ? column.append_null()
                           : column.append_text(text_of(row));
  return column;
}
Column numbers(const Numbers64& number_of, bool nulls = true) {
  Column column{.type = ColumnType::float64};
  for (std::int64_t row = 0; row < kRows; ++row)
    nulls&& row % 97 == 50 ? column.append_null()
                           : column.append_float64(number_of(row));
  return column;
}
template <class... Columns>
std::vector<Column> columns(Columns... all) {
  std::vector<Column> list;
  (list.push_back(std::move(all)), ...);
  return list;
}

/// `count` numbers of a row as a JSON list.
std::string list(std::int64_t row, std::int64_t count) {
  std::string text = "[";
  for (std::int64_t i = 0; i < count; ++i)
    text += (i > 0 ? ", " : "") + std::to_string((row * 7 + i * 13) % 500);
  return text + "]";
}
double wave(std::int64_t row) {
  return static_cast<double>(row * 7919 % 1009) / 8 - 40;
}
template <class Kind, class... Args>
FieldKindCase fake(const std::string& name,
                   std::function<std::vector<Column>()> columns, Args... args) {
  return {name,
          [args...] {
            return Field{"x", std::make_shared<Kind>("x", "c", args...)};
          },
          std::move(columns)};
}

std::vector<Column> two_numbers() {
  return columns(numbers(wave), numbers([](std::int64_t row) {
                   return static_cast<double>(row % 5) * 1e200;
                 }));
}
std::vector<Column> words() {
  return columns(texts([](std::int64_t row) {
    return "word " + std::to_string(row * row % 23);
  }));
}
std::vector<Column> lists_of_numbers() {
  return columns(texts([](std::int64_t row) { return list(row, row % 17); }));
}
std::vector<Column> documents() {
  return columns(texts([](std::int64_t row) {
    std::string text = "[";
    for (std::int64_t i = 0; i < row % 6; ++i)
      text += (i > 0 ? ", " : "") + std::string(R"({"a": )") +
              std::to_string(row % 31) + R"(, "b": )" +
              (row % 2 == 0 ? "true" : "false") + "}";
    return text + (row % 89 == 7 ? "" : "]");  // one of them is cut off
  }));
}
std::vector<Column> labels() {
  return columns(texts([](std::int64_t row) {
    return R"(["cat )" + std::to_string(row % 7) + R"(", "dog"])";
  }));
}
std::vector<Column> boxes() {
  return columns(texts([](std::int64_t row) {
                   return row % 3 == 0
                              ? "[]"
                              : "[[1, 2, 20, " + std::to_string(10 + row % 9) +
                                    "]]";
                 }),
                 numbers([](std::int64_t) { return 40; }, false),
                 numbers([](std::int64_t) { return 30; }, false));
}
std::vector<Column> letters() {
  return columns(texts(
      [](std::int64_t row) {
        return std::string(static_cast<std::size_t>(row * 7 % 23), 'a') +
               (row % 41 == 3 ? "!" : "b");
      },
      false));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, FieldKindSuite,
    testing::Values(
        case_of_job("columns", R"({"columns": ["a", "b"], "standardize": true,
                              "missing": "mean"})",
                    two_numbers),
        case_of_job("columns_of_which_some_are_bad",
                    R"({"columns": ["a", "b"], "dtype": "float64"})",
                    two_numbers),
        case_of_job("columns_with_masks",
                    R"({"columns": ["a", "b"], "missing": "mask"})",
                    two_numbers),
        case_of_job("quantile", R"({"columns": ["a", "b"], "quantile": "normal",
                               "missing": "median"})",
                    two_numbers),
        case_of_job("column", R"({"column": "a", "dtype": "float64"})",
                    [] { return columns(numbers(wave)); }),
        case_of_job("category",
                    R"({"category": {"column": "a", "min_count": 3}})", words),
        case_of_job("multi_hot", R"({"multi_hot": {"column": "a", "size": 8}})",
                    labels),
        case_of_job("json_set",
                    R"({"json_set": {"column": "a", "keys": ["a", "b"],
                               "max": 4, "overflow": "strongest",
                         "sort_by": "a"}, "standardize": true})",
                    documents),
        case_of_job("array", R"({"array": {"column": "a", "shape": [3],
                            "missing": "mask"}})",
                    [] {
                      return columns(texts([](std::int64_t row) {
                        return list(row, row % 71 == 9 ? 2 : 3);
                      }));
                    }),
        case_of_job("array_that_is_padded",
                    R"({"array": {"column": "a", "lengths": "padded"}})",
                    lists_of_numbers),
        case_of_job("array_with_noise",
                    R"({"array": {"column": "a", "shape": [3],
                   "augment": [{"noise": {"snr": [5, 20]}}]}})",
                    [] {
                      return columns(
                          texts([](std::int64_t row) { return list(row, 3); }));
                    }),
        case_of_job("time", R"({"time": {"column": "a",
                           "parts": ["hour", "weekday"]}})",
                    [] {
                      return columns(numbers([](std::int64_t row) {
                        return row % 83 == 4 ? 1e300
                                             : static_cast<double>(row) * 1e5;
                      }));
                    }),
        case_of_job("text", R"({"text": {"column": "a"}})", words),
        case_of_job("tokens", R"({"tokens": {"column": "a", "vocab_size": 5000,
                             "max_length": 12, "pack": "none"}})",
                    lists_of_numbers),
        case_of_job("tokens_that_are_packed",
                    R"({"tokens": {"column": "a", "vocab_size": 70000,
                   "max_length": 24}})",
                    lists_of_numbers),
        case_of_job("boxes", R"({"boxes": {"column": "a", "format": "voc",
                            "width": "w", "height": "h", "most": 2,
                            "image": {"size": [24, 32], "flip": 0.5,
                                      "train": "random_resized_crop"}}})",
                    boxes),
        fake<Letters>("letters", letters, Lengths::packed,
                      Letters::Wrong::nothing),
        fake<Noisy>(
            "noisy",
            [] {
              return columns(numbers(
                  [](std::int64_t row) {
                    return row % 67 == 5 ? -1.0
                                         : static_cast<double>(row % 200);
                  },
                  false));
            },
            Noisy::Wrong::nothing),
        fake<Strip>("strip", letters, std::size_t{8})),
    testing::PrintToStringParamName());

#ifdef PENSTOCK_TEST_DATA
INSTANTIATE_TEST_SUITE_P(Media, FieldKindSuite,
                         testing::ValuesIn(media_cases()),
                         testing::PrintToStringParamName());
#endif

TEST(Kinds, AllAreInASuite) {
  std::set<std::string> missing;
  for (const FieldDescriptor& kind : field_descriptors())
    missing.insert(kind.key);
  for (const char* key :
       {"columns", "column", "category", "multi_hot", "json_set", "array",
        "time", "text", "tokens", "boxes", "image", "audio"})
    EXPECT_EQ(missing.erase(key), 1u) << key;
  EXPECT_TRUE(missing.empty())
      << "'" << *missing.begin() << "' goes through no FieldKindSuite";
}

}  // namespace
}  // namespace penstock
