#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/settings.h"
#include "penstock/transforms/field_kind.h"
#include "penstock/transforms/image/image.h"

namespace penstock {

/// How the numbers of a box stand in its column.
enum class BoxFormat : std::uint8_t {
  coco,    ///< left, top, width, height, in pixels
  voc,     ///< left, top, right, bottom, in pixels
  yolo,    ///< class, middle x, middle y, width, height: parts of the sides
  points,  ///< key points: x, y, in pixels, and whether it is visible
};

/// A column of boxes, or of key points, on the pictures of an `image` field.
struct Boxes {
  std::string column = "boxes";
  std::string classes;  ///< a column of lists beside it; empty: it has them
  BoxFormat format = BoxFormat::coco;
  int most = 100;  ///< of a picture
  /// Columns with the sizes of pictures; both empty: the pictures' headers, of
  /// image.column, say them.
  std::string width, height;
  Image image;  ///< the settings of the field of pictures
};

/// A box as stored: left, top, right and bottom in pixels of the whole
/// picture that is turned as EXIF says; of key points x, y, and whether it is
/// visible (0 or 1), and 0.
struct StoredBox {
  std::array<float, 4> numbers{};
  std::int32_t of_class = -1;
};

/// The kind `boxes`: NAME, float32 [most, 4]: left, top, right, bottom in
/// pixels of the tensor's picture, cut off at its edges; NAME_class, int64
/// [most]: -1 where there is no box, or nothing of it is left. Of key points
/// NAME, float32 [most, 3]: x, y, and 1 where the point is there, visible and
/// inside, else 0.
///
/// Crops, mirrors and turns are those of the picture, since draws depend on
/// seed, epoch and sample alone; what comes of boxes is what torchvision's
/// transforms of BoundingBoxes do.
std::shared_ptr<const FieldKind> make_boxes(std::string name, Boxes boxes);

/// Reads a list of boxes. What is wrong with it; empty: nothing.
///
/// JSON: a list of lists of numbers, of which a fifth is the class, or of
/// objects with "bbox" (or "keypoints"), and "category_id" (or "category",
/// "class", "label"); or an object whose members are such lists, as Hugging
/// Face has it. In the format `yolo` also lines "class x y width height".
std::string read_boxes(const std::string& text, const Boxes& boxes, int width,
                       int height, std::vector<StoredBox>& out);
/// Gives boxes their classes, a list of as many. What is wrong with it.
std::string set_classes(const Json& classes, std::vector<StoredBox>& boxes);

/// `most` boxes as stored: width and height as int32, how many there
/// are, and the boxes.
std::unique_ptr<FieldFinisher> make_boxes_finisher(const Boxes& boxes,
                                                   bool train);
std::size_t stored_bytes(const Boxes& boxes);

const SettingsTable<Boxes>& boxes_settings();

}  // namespace penstock
