#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "penstock/base/error.h"
#include "penstock/base/json.h"
#include "penstock/transforms/boxes/boxes.h"

namespace penstock {
namespace {

using Numbers = std::vector<double>;

/// One box as it is written.
struct Written {
  Numbers numbers;
  std::int32_t of_class = -1;
};

const Json* member(const Json& object,
                   std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (const Json* found = object.find(key)) return found;
  return nullptr;
}

bool numbers_of(const Json& list, Numbers& to) {
  to.clear();
  if (!list.is_array()) return false;
  for (const Json& one : list.array()) {
    if (!one.is_number()) return false;
    to.push_back(one.number());
  }
  return true;
}

class BoxReader {
 public:
  BoxReader(const Boxes& boxes, int width, int height,
            std::vector<StoredBox>& out)
      : format_(boxes.format), width_(width), height_(height), out_(out) {}

  std::string read(const Json& json) {
    if (json.is_object()) return read_columns(json);
    if (!json.is_array()) return "found " + json.dump() + ", expected a list";
    for (const Json& one : json.array()) {
      std::string why = one.is_object() ? read_object(one) : read_list(one);
      if (!why.empty()) return why;
    }
    return {};
  }

  std::string read_lines(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      Numbers numbers;
      for (double number; words >> number;) numbers.push_back(number);
      if (numbers.empty() && words.eof()) continue;
      if (!words.eof() || numbers.size() != 5)
        return "found the line \"" + line +
               "\", expected class, x, y, width and height";
      std::string why =
          add({.numbers = {numbers.begin() + 1, numbers.end()},
               .of_class = static_cast<std::int32_t>(numbers[0])});
      if (!why.empty()) return why;
    }
    return {};
  }

 private:
  std::string read_list(const Json& list) {
    Written box;
    if (!numbers_of(list, box.numbers))
      return "found " + list.dump() + ", expected a list of numbers";
    if (format_ == BoxFormat::yolo && box.numbers.size() == 5) {
      box.of_class = static_cast<std::int32_t>(box.numbers[0]);
      box.numbers.erase(box.numbers.begin());
    } else if (format_ != BoxFormat::points && box.numbers.size() == 5) {
      box.of_class = static_cast<std::int32_t>(box.numbers[4]);
      box.numbers.pop_back();
    }
    return add(std::move(box));
  }

  std::string read_object(const Json& object) {
    const Json* numbers = member(object, {"bbox", "box", "keypoints"});
    const Json* of_class =
        member(object, {"category_id", "category", "class", "label"});
    Written box;
    if (numbers == nullptr || !numbers_of(*numbers, box.numbers))
      return "found " + object.dump() + ", which has no list \"bbox\"";
    if (of_class != nullptr && of_class->is_number())
      box.of_class = static_cast<std::int32_t>(of_class->number());
    if (format_ != BoxFormat::points) return add(std::move(box));
    // COCO has all key points of an object in one list, three numbers each.
    for (std::size_t at = 0; at + 3 <= box.numbers.size(); at += 3) {
      std::string why = add({.numbers = {box.numbers[at], box.numbers[at + 1],
                                         box.numbers[at + 2]}});
      if (!why.empty()) return why;
    }
    return {};
  }

  std::string read_columns(const Json& columns) {
    const Json* boxes = member(columns, {"bbox", "box", "boxes", "keypoints"});
    const Json* classes =
        member(columns, {"category_id", "category", "class", "label"});
    if (boxes == nullptr || !boxes->is_array())
      return "found " + columns.dump() + ", which has no list \"bbox\"";
    for (std::size_t at = 0; at < boxes->array().size(); ++at) {
      Written box;
      if (!numbers_of(boxes->array()[at], box.numbers))
        return "found " + boxes->array()[at].dump() +
               ", expected a list of numbers";
      if (classes != nullptr && classes->is_array() &&
          at < classes->array().size() && classes->array()[at].is_number())
        box.of_class = static_cast<std::int32_t>(classes->array()[at].number());
      std::string why = add(std::move(box));
      if (!why.empty()) return why;
    }
    return {};
  }

  std::string add(Written box) {
    const bool point = format_ == BoxFormat::points;
    const std::size_t least = point ? 2 : 4, most = point ? 3 : 4;
    Numbers& n = box.numbers;
    if (n.size() < least || n.size() > most)
      return "found " + std::to_string(n.size()) + " numbers, expected " +
             std::to_string(most);
    if (!std::ranges::all_of(n, [](double of) { return std::isfinite(of); }))
      return "found a number that is none";
    const std::string shown = shown_of(n);
    if (format_ == BoxFormat::coco) {
      n = {n[0], n[1], n[0] + n[2], n[1] + n[3]};
    } else if (format_ == BoxFormat::yolo) {
      n = {(n[0] - n[2] / 2) * width_, (n[1] - n[3] / 2) * height_,
           (n[0] + n[2] / 2) * width_, (n[1] + n[3] / 2) * height_};
    } else if (point) {
      // Of COCO: 0 is not labelled, 1 hidden, 2 visible.
      n = {n[0], n[1], n.size() < 3 || n[2] > 0 ? 1.0 : 0.0, 0};
    }
    std::string why = check(n, point, shown);
    if (!why.empty()) return why;
    StoredBox& to = out_.emplace_back();
    to.of_class = box.of_class < 0 && !point ? 0 : box.of_class;
    for (std::size_t i = 0; i < 4; ++i)
      to.numbers[i] = static_cast<float>(n[i]);
    return {};
  }

  static std::string shown_of(const Numbers& numbers) {
    std::string text;
    for (double number : numbers) {
      char digits[32];
      std::snprintf(digits, sizeof(digits), "%g", number);
      text += (text.empty() ? "[" : ", ") + std::string(digits);
    }
    return text + "]";
  }

  /// A pixel beyond the edge is rounding.
  std::string check(const Numbers& n, bool point,
                    const std::string& shown) const {
    constexpr double kRounding = 1;
    if (point && n[2] == 0) return {};
    const std::string of = " of a picture of " + std::to_string(width_) +
                           " x " + std::to_string(height_) + " pixels";
    const std::size_t right = point ? 0 : 2, bottom = point ? 1 : 3;
    if (!point && (n[2] <= n[0] || n[3] <= n[1]))
      return "found the box " + shown + of + ", which has no area";
    if (n[0] < -kRounding || n[1] < -kRounding ||
        n[right] > width_ + kRounding || n[bottom] > height_ + kRounding)
      return "found " + shown + of + ", which is outside";
    return {};
  }

  const BoxFormat format_;
  const int width_, height_;
  std::vector<StoredBox>& out_;
};

}  // namespace

std::string read_boxes(const std::string& text, const Boxes& boxes, int width,
                       int height, std::vector<StoredBox>& out) {
  out.clear();
  BoxReader reader(boxes, width, height, out);
  std::string why;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool json =
      first != text.npos && (text[first] == '[' || text[first] == '{');
  if (!json && boxes.format == BoxFormat::yolo) {
    why = reader.read_lines(text);
  } else {
    try {
      why = reader.read(Json::parse(text, boxes.column));
    } catch (const Error& error) {
      return "it is not JSON: " + error.parts().why;
    }
  }
  if (why.empty() && out.size() > static_cast<std::size_t>(boxes.most))
    return "it has " + std::to_string(out.size()) + ", and \"most\" is " +
           std::to_string(boxes.most);
  return why;
}

}  // namespace penstock
