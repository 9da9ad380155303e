#include "penstock/transforms/boxes/moves.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "penstock/base/json.h"
#include "penstock/transforms/image/test_pictures.h"

namespace penstock {
namespace {

std::vector<double> numbers_of(const Json& list) {
  std::vector<double> numbers;
  for (const Json& number : list.array()) numbers.push_back(number.number());
  return numbers;
}

Edges edges_of(const Json& list) {
  const std::vector<double> numbers = numbers_of(list);
  Edges edges{};
  for (std::size_t i = 0; i < edges.size(); ++i)
    edges[i] = static_cast<float>(numbers[i]);
  return edges;
}

/// A row of NAME_augment, whose last numbers may be missing.
PixelChange change_of(const Json& list) {
  const std::vector<double> numbers = numbers_of(list);
  PixelChange change{.change = static_cast<Change>(numbers[0])};
  std::copy(numbers.begin() + 1, numbers.end(), change.numbers.begin());
  return change;
}

/// What make_boxes.py cropped or resized, mirrored and moved.
class Case {
 public:
  explicit Case(const Json& json)
      : width(static_cast<int>(json.find("size")->array()[1].integer())),
        height(static_cast<int>(json.find("size")->array()[0].integer())) {
    Image image;
    image.width = width;
    image.height = height;
    const int w = static_cast<int>(json.find("width")->integer());
    const int h = static_cast<int>(json.find("height")->integer());
    if (const Json* crop = json.find("crop")) {
      const std::vector<double> n = numbers_of(*crop);
      view.crop = {static_cast<int>(n[1]), static_cast<int>(n[0]),
                   static_cast<int>(n[3]), static_cast<int>(n[2])};
      view.columns = ResizeAxis::whole(view.crop.width, width);
      view.rows = ResizeAxis::whole(view.crop.height, height);
    } else {
      image.resize = static_cast<int>(json.find("resize")->integer());
      view = view_of(image, Framing::resize_center, w, h, Random(0, 0, 0, 0),
                     Random(0, 0, 0, 0), false);
    }
    view.flipped = json.find("flipped")->integer() != 0;
    for (const Json& change : json.find("changes")->array())
      changes.push_back(change_of(change));
  }

  int width, height;
  View view;
  std::vector<PixelChange> changes;
};

TEST(MovesTest, BoxesAreThoseOfTorchvisionsTransformsThatFollowEachOther) {
  const Json golden = Json::parse(
      test_pictures::read_file(PENSTOCK_TEST_DATA "/images/boxes.json"),
      "boxes.json");
  for (const Json& json : golden.find("cases")->array()) {
    SCOPED_TRACE(json.dump());
    const Case of(json);
    const Moves moves(of.width, of.height, of.view, of.changes);
    for (std::size_t b = 0; b < json.find("before")->array().size(); ++b) {
      const Edges found = moves.of(edges_of(json.find("before")->array()[b]));
      const Edges wanted = edges_of(json.find("boxes")->array()[b]);
      for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_NEAR(found[i], wanted[i], 1e-3) << "of box " << b;
      for (std::size_t i = 0; i < 2; ++i)
        EXPECT_EQ(found[i] < found[i + 2], wanted[i] < wanted[i + 2])
            << "of box " << b;
    }
  }
}

TEST(MovesTest, APointThatTheCropCutOffDoesNotComeBack) {
  const View left_half{.crop = {0, 0, 20, 40},
                       .columns = ResizeAxis::whole(20, 40),
                       .rows = ResizeAxis::whole(40, 40)};
  const std::vector<PixelChange> back = {
      {.change = Change::affine, .numbers = {0, -30, 0, 1, 0, 0, 0}}};
  EXPECT_FALSE(Moves(40, 40, left_half, back).of(Point{30, 20}))
      << "it would be at 30 again, on pixels that are filled";
  const std::optional<Point> kept =
      Moves(40, 40, left_half, back).of(Point{18, 20});
  ASSERT_TRUE(kept);
  EXPECT_NEAR(kept->x, 6, 1e-9);
}

}  // namespace
}  // namespace penstock
