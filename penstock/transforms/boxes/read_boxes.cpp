#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <sstream>

#include "penstock/base/error.h"
#include "penstock/base/json.h"
#include "penstock/base/utf8.h"
#include "penstock/transforms/boxes/boxes.h"

namespace penstock {
namespace {

using Numbers = std::vector<double>;

constexpr std::size_t kShownBytes = 100;  // of what is wrong

std::string shown(const Json& json) {
  return beginning(json.dump(), kShownBytes);
}

/// One box as written; without a class it is of class 0.
struct Written {
  Numbers numbers;
  std::int32_t of_class = 0;
};

const Json* member(const Json& object,
                   std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (const Json* found = object.find(key)) return found;
  return nullptr;
}

const Json* classes_of(const Json& object) {
  return member(object, {"category_id", "category", "class", "label"});
}

/// What is wrong with a class.
std::string read_class(const Json& json, std::int32_t& to) {
  const double number = json.is_number() ? json.number() : -1;
  if (!(number >= 0 && number == std::floor(number) &&
        number <= std::numeric_limits<std::int32_t>::max()))
    return "found the class " + shown(json) +
           ", expected a whole number, 0 or more";
  to = static_cast<std::int32_t>(number);
  return {};
}

std::string check_count(const Json& classes, std::size_t boxes) {
  if (classes.is_array() && classes.array().size() == boxes) return {};
  return "found the classes " + shown(classes) + ", expected a list of " +
         std::to_string(boxes);
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
    if (!json.is_array()) return "found " + shown(json) + ", expected a list";
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
        return "found the line \"" + beginning(line, kShownBytes) +
               "\", expected class, x, y, width and height";
      Written box{.numbers = {numbers.begin() + 1, numbers.end()}};
      std::string why = read_class(Json(numbers[0]), box.of_class);
      if (why.empty()) why = add(std::move(box));
      if (!why.empty()) return why;
    }
    return {};
  }

 private:
  std::string read_list(const Json& list) {
    Written box;
    if (!numbers_of(list, box.numbers))
      return "found " + shown(list) + ", expected a list of numbers";
    if (format_ != BoxFormat::points && box.numbers.size() == 5) {
      const auto at = format_ == BoxFormat::yolo ? box.numbers.begin()
                                                 : box.numbers.end() - 1;
      std::string why = read_class(Json(*at), box.of_class);
      if (!why.empty()) return why;
      box.numbers.erase(at);
    }
    return add_all(std::move(box));
  }

  std::string read_object(const Json& object) {
    const Json* numbers = numbers_in(object);
    const Json* of_class = classes_of(object);
    Written box;
    if (numbers == nullptr || !numbers_of(*numbers, box.numbers))
      return no_list(object);
    if (std::string why =
            of_class ? read_class(*of_class, box.of_class) : std::string();
        !why.empty())
      return why;
    return add_all(std::move(box));
  }

  std::string read_columns(const Json& columns) {
    const Json* boxes = numbers_in(columns);
    const Json* classes = classes_of(columns);
    if (boxes == nullptr || !boxes->is_array()) return no_list(columns);
    const std::size_t count = boxes->array().size();
    if (classes != nullptr)
      if (std::string why = check_count(*classes, count); !why.empty())
        return why;
    for (std::size_t at = 0; at < count; ++at) {
      Written box;
      if (!numbers_of(boxes->array()[at], box.numbers))
        return "found " + shown(boxes->array()[at]) +
               ", expected a list of numbers";
      std::string why;
      if (classes != nullptr)
        why = read_class(classes->array()[at], box.of_class);
      if (why.empty()) why = add_all(std::move(box));
      if (!why.empty()) return why;
    }
    return {};
  }

  /// An annotation of COCO has both.
  const Json* numbers_in(const Json& object) const {
    if (format_ == BoxFormat::points) return object.find("keypoints");
    return member(object, {"bbox", "box", "boxes"});
  }
  std::string no_list(const Json& json) const {
    return "found " + shown(json) + ", which has no list \"" +
           (format_ == BoxFormat::points ? "keypoints" : "bbox") + "\"";
  }

  /// COCO has all key points of an object in one list, three numbers each.
  std::string add_all(Written box) {
    const Numbers& n = box.numbers;
    if (format_ != BoxFormat::points || n.size() == 2)
      return add(std::move(box));
    if (n.size() % 3 != 0)
      return "found " + std::to_string(n.size()) +
             " numbers, expected three for each point";
    for (std::size_t at = 0; at < n.size(); at += 3) {
      std::string why = add({.numbers = {n[at], n[at + 1], n[at + 2]}});
      if (!why.empty()) return why;
    }
    return {};
  }

  std::string add(Written box) {
    const bool point = format_ == BoxFormat::points;
    Numbers& n = box.numbers;
    if (!point && n.size() != 4)
      return "found " + std::to_string(n.size()) + " numbers, expected 4";
    if (!std::ranges::all_of(n, [](double of) { return std::isfinite(of); }))
      return "found a value that is not a number";
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
    to.of_class = box.of_class;
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

std::string set_classes(const Json& classes, std::vector<StoredBox>& boxes) {
  std::string why = check_count(classes, boxes.size());
  for (std::size_t at = 0; why.empty() && at < boxes.size(); ++at)
    why = read_class(classes.array()[at], boxes[at].of_class);
  return why;
}

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
      return "the text is not JSON: " + error.parts().why;
    }
  }
  if (why.empty() && out.size() > static_cast<std::size_t>(boxes.most))
    return "the picture has " + std::to_string(out.size()) +
           " boxes, but \"most\" is " + std::to_string(boxes.most);
  return why;
}

}  // namespace penstock
