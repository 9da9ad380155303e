#include "penstock/transforms/boxes/boxes.h"

#include <gmock/gmock.h>

#include "penstock/transforms/image/test_pictures.h"
#include "penstock/transforms/transforms.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;

class BoxesTest : public testing::Test {
 protected:
  Field field(const std::string& settings) {
    return parse_fields(
        Json::parse(R"({"b": {"boxes": )" + settings + "}}", "test"),
        "fields")[0];
  }
  /// Parses and stores one row: boxes, and the picture's size.
  std::vector<RowFault> store(const Field& of, const std::string& boxes,
                              double width, double height) {
    Block block;
    block.rows = 1;
    Column& text = block.columns.emplace_back();
    text.type = ColumnType::text;
    text.append_text(boxes);
    for (double side : {width, height}) {
      Column& column = block.columns.emplace_back();
      column.type = ColumnType::float64;
      column.append_float64(side);
    }
    auto bound = of.kind->bind(
        {.info = {{.name = "boxes"}, {.name = "w"}, {.name = "h"}},
         .types = {ColumnType::text, ColumnType::float64, ColumnType::float64},
         .at = {0, 1, 2}});
    Faults faults;
    Values values;
    bound->parser()->parse(block, values, faults);
    stored_.assign(values.width, std::byte{});
    const ValueRow row = values.row(0);
    bound->encoder(Json(), "b")
        ->encode(std::span(&row, 1),
                 {.data = stored_.data(), .stride = stored_.size()}, faults);
    return faults.rows;
  }
  /// The numbers of the first output; those of the second in classes_.
  std::vector<float> finished(const Field& of, bool train = true) {
    const std::vector<Output> outputs = of.kind->facts().outputs;
    std::vector<float> numbers(outputs[0].bytes() / sizeof(float), -7.0F);
    std::vector<TensorPlace> to = {
        {.data = reinterpret_cast<std::byte*>(numbers.data()),
         .bytes = outputs[0].bytes()}};
    if (outputs.size() > 1) {
      classes_.assign(outputs[1].bytes() / sizeof(std::int64_t), -7);
      to.push_back({.data = reinterpret_cast<std::byte*>(classes_.data()),
                    .bytes = outputs[1].bytes()});
    }
    const StoredRow row{.tensors = stored_.data(), .range = {.sample = 5}};
    of.kind->finisher(train)->finish(std::span(&row, 1), {.seed = 1}, to);
    return numbers;
  }
  std::string why(const std::string& boxes, const std::string& format) {
    const Field of = field(R"({"width": "w", "height": "h", "most": 2,
        "format": ")" + format +
                           R"(", "image": {}})");
    const std::vector<RowFault> faults = store(of, boxes, 40, 30);
    return faults.empty() ? std::string() : faults[0].why;
  }

  std::vector<std::byte> stored_;
  std::vector<std::int64_t> classes_;
};

TEST_F(BoxesTest, AreMovedAsTorchvisionMovesThem) {
  const Json golden = Json::parse(
      test_pictures::read_file(PENSTOCK_TEST_DATA "/images/changes.json"),
      "changes.json");
  for (const Json& json : golden.find("boxes")->array()) {
    SCOPED_TRACE(json.dump());
    std::vector<double> n;
    for (const Json& number : json.find("numbers")->array())
      n.push_back(number.number());
    auto twice = [](double number) {
      return Json(Json::Array{Json(number), Json(number)}).dump();
    };
    const std::int64_t change = json.find("change")->integer();
    std::string entry = R"({"vertical_flip": {"p": 1}})";
    if (change == 1)
      entry = R"({"rotation": {"degrees": )" + twice(n[0]) + "}}";
    if (change == 2)
      entry = R"({"affine": {"degrees": )" + twice(n[0]) + R"(, "scale": )" +
              twice(n[3]) + R"(, "shear": )" +
              Json(Json::Array{Json(n[4]), Json(n[4]), Json(n[5]), Json(n[5])})
                  .dump() +
              "}}";
    const Field of = field(R"({"width": "w", "height": "h", "most": 3,
        "format": "voc", "image": {"size": [48, 64], "train": "resize",
        "flip": 1, "augment": [)" +
                           entry + "]}}");
    ASSERT_TRUE(
        store(of, "[[4, 3, 18, 27], [0, 0, 40, 30], [30, 20, 39, 29]]", 40, 30)
            .empty());
    const std::vector<float> found = finished(of);
    std::size_t at = 0;
    for (const Json& box : json.find("boxes")->array()) {
      const auto& numbers = box.array();
      const bool empty = numbers[0].number() >= numbers[2].number() ||
                         numbers[1].number() >= numbers[3].number();
      EXPECT_EQ(classes_[at / 4], empty ? -1 : 0);
      for (const Json& number : numbers)
        EXPECT_NEAR(found[at++], empty ? 0 : number.number(), 2e-4);
    }
  }
}

TEST_F(BoxesTest, FollowTheCropThatThePictureGets) {
  const std::string image = R"("image": {"size": [20, 20], "flip": 0.5,
                                         "train": "random_resized_crop"})";
  const Field points =
      field(R"({"format": "points", "width": "w", "height": "h", "most": 4, )" +
            image + "}");
  const Field boxes =
      field(R"({"format": "voc", "width": "w", "height": "h", "most": 4, )" +
            image + "}");
  ASSERT_TRUE(store(points, "[[20, 15], [0, 0], [40, 30, 0]]", 40, 30).empty());
  const std::vector<float> p = finished(points);
  ASSERT_TRUE(store(boxes, "[[19.5, 14.5, 20.5, 15.5, 3]]", 40, 30).empty());
  const std::vector<float> b = finished(boxes);
  EXPECT_EQ(p[2], 1) << "the middle is in the crop of this sample";
  EXPECT_EQ(p[8], 0) << "it is hidden";
  EXPECT_NEAR((b[0] + b[2]) / 2, p[0], 1e-4);
  EXPECT_NEAR((b[1] + b[3]) / 2, p[1], 1e-4);
  EXPECT_THAT(classes_, ElementsAre(3, -1, -1, -1));
}

TEST_F(BoxesTest, AreReadInTheFormatsThatThereAre) {
  const std::string end = R"(, "width": "w", "height": "h", "most": 2,
      "image": {"size": [30, 40], "val": "none"}})";
  for (const auto& [format, text] :
       std::vector<std::pair<std::string, std::string>>{
           {"coco", "[[4, 3, 16, 12, 7]]"},
           {"coco", R"([{"bbox": [4, 3, 16, 12], "category_id": 7}])"},
           {"coco", R"({"bbox": [[4, 3, 16, 12]], "category": [7]})"},
           {"voc", "[[4, 3, 20, 15, 7]]"},
           {"yolo", "7 0.3 0.3 0.4 0.4\n"},
           {"yolo", "[[7, 0.3, 0.3, 0.4, 0.4]]"}}) {
    SCOPED_TRACE(format + text);
    const Field of = field(R"({"format": ")" + format + "\"" + end);
    ASSERT_TRUE(store(of, text, 40, 30).empty());
    const std::vector<float> found = finished(of, false);
    EXPECT_THAT(found, ElementsAre(FloatEq(4), FloatEq(3), FloatEq(20),
                                   FloatEq(15), 0, 0, 0, 0));
    EXPECT_THAT(classes_, ElementsAre(7, -1));
  }
}

TEST_F(BoxesTest, BadOnesAreNamed) {
  EXPECT_THAT(why("[[30, 3, 16, 12]]", "coco"),
              HasSubstr("[30, 3, 16, 12] of a picture of 40 x 30 pixels, which "
                        "is outside"));
  EXPECT_THAT(why("[[3, 3, 0, 12]]", "coco"), HasSubstr("no area"));
  EXPECT_THAT(why("[[3, 3]]", "coco"), HasSubstr("2 numbers, expected 4"));
  EXPECT_THAT(why("[[\"a\"]]", "coco"), HasSubstr("list of numbers"));
  EXPECT_THAT(why("[[1, 1, 2, 2], [1, 1, 2, 2], [1, 1, 2, 2]]", "coco"),
              HasSubstr("has 3 boxes, but \"most\" is 2"));
  EXPECT_THAT(why("{", "coco"), HasSubstr("not JSON"));
  EXPECT_THAT(why("7 0.5 0.5 x 0.1", "yolo"), HasSubstr("found the line"));
  EXPECT_THAT(why("[[50, 3]]", "points"), HasSubstr("outside"));
  EXPECT_THAT(why("[[1, 2, 2, 3]]", "points"),
              HasSubstr("4 numbers, expected three for each point"));
  EXPECT_EQ(why("[]", "coco"), "");
  const std::string word(100'000, 'a');
  EXPECT_LT(why("[[\"" + word + "\"]]", "coco").size(), 200u);
  EXPECT_LT(why(word, "yolo").size(), 200u);
}

TEST_F(BoxesTest, AClassIsAWholeNumberFrom0On) {
  for (const auto& [format, text, found] :
       std::vector<std::array<std::string, 3>>{
           {"coco", R"([{"bbox": [1, 1, 2, 2], "category": "cat"}])",
            "\"cat\""},
           {"coco", R"({"bbox": [[1, 1, 2, 2]], "category": ["cat"]})",
            "\"cat\""},
           {"voc", "[[1, 1, 2, 2, -1]]", "-1"},
           {"yolo", "1.5 0.5 0.5 0.1 0.1", "1.5"},
           {"yolo", "[[1e10, 0.5, 0.5, 0.1, 0.1]]", "1"}}) {
    SCOPED_TRACE(text);
    EXPECT_THAT(why(text, format), HasSubstr("found the class " + found));
  }
  EXPECT_THAT(
      why(R"({"bbox": [[1, 1, 2, 2], [1, 1, 2, 2]], "category": [3]})", "coco"),
      HasSubstr("the classes [3], expected a list of 2"))
      << "the second box would be one of class 0";
}

/// Lists of whole numbers; or written as JSON.
Column lists_of(const std::vector<std::vector<std::int64_t>>& rows,
                bool written) {
  Column lists;
  lists.type =
      written ? ColumnType::text : ColumnType{.kind = ColumnKind::list};
  lists.children.emplace_back().type = ColumnType::int64;
  for (const std::vector<std::int64_t>& row : rows) {
    Json json(Json::Array{});
    for (std::int64_t number : row) json.push_back(number);
    if (written) {
      lists.append_text(json.dump());
      continue;
    }
    for (std::int64_t number : row) lists.children[0].append_int64(number);
    lists.append_list();
  }
  return lists;
}

TEST_F(BoxesTest, HaveTheClassesOfAnotherColumn) {
  const Field of = field(R"({"width": "w", "height": "h", "most": 2,
      "classes": "c", "image": {"size": [30, 40], "val": "none"}})");
  for (bool written : {false, true}) {
    Block block;
    block.rows = 4;
    block.columns.resize(3);
    block.columns[0].type = ColumnType::text;
    for (const char* text : {"[[4, 3, 16, 12], [1, 1, 2, 2]]",
                             "[[4, 3, 16, 12]]", "[]", "[[4, 3, 16, 12]]"})
      block.columns[0].append_text(text);
    for (std::size_t side : {std::size_t{1}, std::size_t{2}}) {
      block.columns[side].type = ColumnType::float64;
      for (int row = 0; row < 4; ++row) block.columns[side].append_float64(50);
    }
    block.columns.push_back(lists_of({{7, 0}, {1, 2}, {}, {-3}}, written));
    Values values;
    Faults faults;
    of.kind
        ->bind({.info = {{.name = "boxes"},
                         {.name = "w"},
                         {.name = "h"},
                         {.name = "c"}},
                .types = {ColumnType::text, ColumnType::float64,
                          ColumnType::float64, block.columns[3].type},
                .at = {0, 1, 2, 3}})
        ->parser()
        ->parse(block, values, faults);
    ASSERT_EQ(faults.rows.size(), 2u);
    EXPECT_EQ(faults.rows[0].row, 1);
    EXPECT_EQ(faults.rows[0].place, "c");
    EXPECT_THAT(faults.rows[0].why, HasSubstr("expected a list of 1"));
    EXPECT_THAT(faults.rows[1].why, HasSubstr("expected a whole number"));
    stored_.assign(values.row(0).begin(), values.row(0).end());
    finished(of, false);
    EXPECT_THAT(classes_, ElementsAre(7, 0));
  }
  EXPECT_THROW(field(R"({"format": "points", "classes": "c", "image": {}})"),
               Error);
}

TEST_F(BoxesTest, KeyPointsOfAnAnnotationAreNotItsBox) {
  const Field of = field(R"({"format": "points", "width": "w", "height": "h",
      "most": 3, "image": {"size": [30, 40], "val": "none"}})");
  for (const char* text :
       {R"([{"bbox": [1, 1, 2, 2], "category_id": 1,
             "keypoints": [5, 6, 2, 0, 0, 0]}])",
        R"({"bbox": [[1, 1, 2, 2]], "keypoints": [[5, 6, 2, 0, 0, 0]]})"}) {
    ASSERT_TRUE(store(of, text, 40, 30).empty()) << text;
    EXPECT_THAT(finished(of, false),
                ElementsAre(FloatEq(5), FloatEq(6), 1, 0, 0, 0, 0, 0, 0))
        << text;
  }
  EXPECT_THAT(why(R"([{"bbox": [1, 1, 2, 2]}])", "points"),
              HasSubstr("no list \"keypoints\""));
}

}  // namespace
}  // namespace penstock
