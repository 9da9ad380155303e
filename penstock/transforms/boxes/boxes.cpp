#include "penstock/transforms/boxes/boxes.h"

#include <utility>

#include "penstock/base/error.h"
#include "penstock/transforms/image/kept_picture.h"
#include "penstock/transforms/image/picture_bytes.h"
#include "penstock/transforms/image/picture_header.h"
#include "penstock/transforms/kinds.h"

namespace penstock {
namespace {

/// What a parser reads: the boxes, and the bytes of the picture, or its sizes.
class Parser final : public FieldParser {
 public:
  Parser(const Boxes& boxes, std::vector<std::size_t> at,
         std::int64_t opened_ns)
      : boxes_(boxes),
        at_(std::move(at)),
        pictures_(boxes.image.folder, opened_ns) {}

  void parse(const Block& block, Values& out, Faults& faults) override {
    out.width = stored_bytes(boxes_);
    for (std::int64_t row = 0; row < block.rows; ++row) {
      std::int32_t size[2] = {0, 0};
      found_.clear();
      std::string place = boxes_.column;
      std::string why = size_of_picture(block, row, size, place);
      if (why.empty()) {
        place = boxes_.column;
        why = read(block, row, size);
      }
      if (why.empty() && !boxes_.classes.empty()) {
        place = boxes_.classes;
        why = read_classes(block.columns[at_.back()], row);
      }
      if (!why.empty())
        faults.reject(
            {.row = row, .place = std::move(place), .why = std::move(why)});
      found_.resize(static_cast<std::size_t>(boxes_.most));
      out.bytes.append_value(size[0]);
      out.bytes.append_value(size[1]);
      out.bytes.append(found_.data(), found_.size() * sizeof(StoredBox));
    }
  }
  std::unique_ptr<FieldNotes> take_notes() override {
    return pictures_.take_notes();
  }

 private:
  std::string read(const Block& block, std::int64_t row,
                   const std::int32_t (&size)[2]) {
    const Column& column = block.columns[at_[0]];
    if (!column.valid(row)) return {};  // no boxes
    return read_boxes(std::string(column.text(row)), boxes_, size[0], size[1],
                      found_);
  }

  /// A list of numbers, or one written as JSON.
  std::string read_classes(const Column& column, std::int64_t row) {
    Json classes(Json::Array{});
    if (!column.valid(row)) return set_classes(classes, found_);
    if (column.type.kind == ColumnKind::list) {
      const Column& numbers = column.children[0];
      for (std::int64_t at = column.offset(row); at < column.offset(row + 1);
           ++at)
        classes.push_back(numbers.valid(at) ? Json(numbers.as_float64(at))
                                            : Json());
      return set_classes(classes, found_);
    }
    try {
      classes = Json::parse(column.text(row), boxes_.classes);
    } catch (const Error& error) {
      return "the text is not JSON: " + error.parts().why;
    }
    return set_classes(classes, found_);
  }

  std::string size_of_picture(const Block& block, std::int64_t row,
                              std::int32_t (&size)[2], std::string& place) {
    if (!boxes_.width.empty()) {
      for (std::size_t i = 0; i < 2; ++i) {
        const Column& column = block.columns[at_[1 + i]];
        place = i == 0 ? boxes_.width : boxes_.height;
        const double number = column.valid(row) ? column.as_float64(row) : 0;
        if (!(number >= 1 && number <= kLongestSide))
          return "is not the size of a picture";
        size[i] = static_cast<std::int32_t>(number);
      }
      return {};
    }
    place = boxes_.image.column;
    PictureHeader header;
    std::string_view bytes;
    std::string why = pictures_.read(block.columns[at_[1]], row, bytes);
    if (why.empty()) why = read_header(std::as_bytes(std::span(bytes)), header);
    size[0] = header.shown_width();
    size[1] = header.shown_height();
    return why;
  }

  const Boxes boxes_;
  const std::vector<std::size_t> at_;
  PictureBytes pictures_;
  std::vector<StoredBox> found_;
};

class BoundBoxes final : public BoundField {
 public:
  BoundBoxes(const Boxes& boxes, std::vector<std::size_t> at)
      : boxes_(boxes), at_(std::move(at)) {}
  std::unique_ptr<FieldParser> parser() const override {
    return std::make_unique<Parser>(boxes_, at_, opened_ns_);
  }
  std::unique_ptr<FieldNotes> notes_of(
      std::span<const std::byte> saved) const override {
    return file_notes_of(saved);
  }

 private:
  const Boxes boxes_;
  const std::vector<std::size_t> at_;
  const std::int64_t opened_ns_ = file_clock_ns();
};

std::vector<ColumnRequest> columns_of(const std::string& name,
                                      const Boxes& boxes) {
  std::vector<ColumnRequest> all;
  auto add = [&](const std::string& column, ReadAs as, const std::string& key) {
    all.push_back({.column = column,
                   .as = as,
                   .setting = "fields." + name + ".boxes." + key});
  };
  add(boxes.column, ReadAs::value, "column");
  if (boxes.width.empty()) {
    add(boxes.image.column, ReadAs::value, std::string("image") + ".column");
  } else {
    add(boxes.width, ReadAs::number, "width");
    add(boxes.height, ReadAs::number, "height");
  }
  if (!boxes.classes.empty()) add(boxes.classes, ReadAs::value, "classes");
  return all;
}

std::vector<Output> outputs_of(const std::string& name, const Boxes& boxes) {
  const std::int64_t most = boxes.most;
  if (boxes.format == BoxFormat::points)
    return {{.name = name, .dtype = Dtype::float32, .row_shape = {most, 3}}};
  return {
      {.name = name, .dtype = Dtype::float32, .row_shape = {most, 4}},
      {.name = name + "_class", .dtype = Dtype::int64, .row_shape = {most}}};
}

FieldFacts facts_of(const std::string& name, const Boxes& boxes) {
  RowLayout layout;
  layout.append({{.name = name,
                  .dtype = Dtype::int32,
                  .row_shape = {static_cast<std::int64_t>(
                      stored_bytes(boxes) / sizeof(std::int32_t))}}});
  return {.columns = columns_of(name, boxes),
          .stored = {.tensors = std::move(layout.tensors)},
          .outputs = outputs_of(name, boxes),
          .recipe = boxes_settings().shown(boxes),
          .built_in = true};
}

class BoxesKind final : public FieldKind {
 public:
  BoxesKind(std::string name, Boxes boxes)
      : FieldKind(facts_of(name, boxes)),
        name_(std::move(name)),
        boxes_(std::move(boxes)) {}

  std::unique_ptr<FieldFinisher> finisher(bool train) const override {
    return make_boxes_finisher(boxes_, train);
  }
  std::shared_ptr<const BoundField> bind(FieldColumns columns) const override {
    for (std::size_t i = 0; i < columns.types.size(); ++i) {
      const ColumnKind kind = columns.types[i].kind;
      const bool bytes = kind == ColumnKind::binary || kind == ColumnKind::utf8;
      const bool classes =
          !boxes_.classes.empty() && i + 1 == columns.types.size();
      const bool size = i > 0 && !classes && !boxes_.width.empty();
      if (bytes || size || (classes && kind == ColumnKind::list)) continue;
      throw Error(
          ErrorKind::request,
          {.code = "fields.not_text",
           .what = "cannot use the settings",
           .where = "fields." + name_ + ".boxes",
           .why = "column '" + columns.info[i].name + "' holds " +
                  std::string(name_of(columns.types[i])) + ", expected text",
           .next = i == 0 || classes ? "name a column of JSON"
                                     : "name the column of the pictures"});
    }
    return std::make_shared<BoundBoxes>(boxes_, columns.at);
  }

 private:
  const std::string name_;
  const Boxes boxes_;
};

SettingsTable<Boxes> make_settings() {
  SettingsTable<Boxes> table;
  table
      .text("column", &Boxes::column,
            "Column of the boxes, as JSON or as YOLO lines")
      .not_empty()
      .text("classes", &Boxes::classes,
            "Column with the lists of the boxes' classes, where they are not "
            "in `column`, as in Hugging Face's objects.category next to "
            "objects.bbox")
      .choice("format", &Boxes::format,
              {{"coco", BoxFormat::coco},
               {"voc", BoxFormat::voc},
               {"yolo", BoxFormat::yolo},
               {"points", BoxFormat::points}},
              "Meaning of the numbers of a box. coco: left, top, width, "
              "height; voc: left, top, right, bottom; yolo: class, center, "
              "width, height, as shares of the sides; points: x, y, visible")
      .integer("most", &Boxes::most, 1, 10'000,
               "Greatest number of boxes of a picture")
      .text("width", &Boxes::width,
            "Column with the width of the picture in pixels. Default: read "
            "from the picture's header")
      .text("height", &Boxes::height,
            "Column with the height of the picture in pixels. Default: read "
            "from the picture's header")
      .inside(&Boxes::image, image_settings())
      .check([](Spec& section, Boxes& boxes) {
        if (boxes.width.empty() != boxes.height.empty())
          section.refuse(boxes.width.empty() ? "width" : "height",
                         "one of \"width\" and \"height\" is missing",
                         "name both columns or neither");
        if (!boxes.classes.empty() && boxes.format == BoxFormat::points)
          section.refuse("classes", "key points have no classes",
                         "leave \"classes\" out");
      });
  return table;
}

}  // namespace

std::size_t stored_bytes(const Boxes& boxes) {
  return 2 * sizeof(std::int32_t) +
         static_cast<std::size_t>(boxes.most) * sizeof(StoredBox);
}

const SettingsTable<Boxes>& boxes_settings() {
  static const SettingsTable<Boxes> table =
      SettingsTable<Boxes>()
          .section("boxes", make_settings(),
                   "Turns boxes or key points of pictures into tensors, and "
                   "moves them with the pictures.")
          .required();
  return table;
}

std::shared_ptr<const FieldKind> make_boxes(std::string name, Boxes boxes) {
  return std::make_shared<BoxesKind>(std::move(name), std::move(boxes));
}

FieldDescriptor boxes_field() {
  return describe_field<Boxes, boxes_settings, make_boxes>("boxes");
}

}  // namespace penstock
