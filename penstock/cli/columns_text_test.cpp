#include "penstock/cli/columns_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ColumnsText, WhatIsLeftOutStandsWithTheReasonAndNotWithoutEnd) {
  Json document(Json::Object{});
  EXPECT_EQ(left_out_text(document), "");
  for (int i = 0; i < 30; ++i) {
    Json one;
    one["name"] = "/x" + std::to_string(i);
    one["why"] = "it holds\nreferences";
    one["next"] = "choose another column";
    document["left_out"].push_back(std::move(one));
  }
  const std::string text = left_out_text(document);
  EXPECT_THAT(text, testing::StartsWith(
                        "\nleft out:\n  /x0: it holds\\nreferences; choose "
                        "another column\n"));
  EXPECT_THAT(text, testing::EndsWith("\n  ... (--json lists all 30)\n"));
  EXPECT_THAT(text, Not(HasSubstr("/x20")));
}

TEST(ColumnsText, FewValuesAreNamedAndTheSpreadOfManyIsDrawn) {
  const std::string text =
      columns_text(Json::parse(R"([{"name": "class", "type": "text", "nulls": 1,
                       "min": "a", "max": "b", "distinct": 2,
                       "distinct_exact": true,
                       "top": [{"value": "a", "rows": 150},
                               {"value": "b", "rows": 49}]},
                      {"name": "x", "type": "float64", "nulls": 0, "min": -1.5,
                       "max": 1e9, "distinct": 90000, "distinct_exact": false,
                       "histogram": [8, 0, 1, 4]},
                      {"name": "y", "type": "json", "nulls": 200, "min": null,
                       "max": null, "distinct": null,
                       "distinct_exact": false}])",
                               "test"),
                   200);
  EXPECT_EQ(text,
            "column  type     NULL   distinct  min   max    values\n"
            "class   text     0.5 %  2         a     b      a 75 %, b 24 %\n"
            "x       float64  0 %    ~90000    -1.5  1e+09  █ ▁▄\n"
            "y       json     100 %  -         -     -\n");
}

}  // namespace
}  // namespace penstock
