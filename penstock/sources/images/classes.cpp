#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "penstock/base/error.h"
#include "penstock/base/utf8.h"
#include "penstock/sources/images/find_pictures.h"

namespace penstock::images {
namespace {

constexpr std::size_t kMostShown = 8;

/// As numbers are written without need: "7", but not "007", which is a name.
std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || std::to_string(number) != text)
    return std::nullopt;
  return number;
}

/// None where one of them is no number.
std::vector<std::int64_t> numbers_of(const std::vector<std::string>& classes) {
  std::vector<std::int64_t> numbers;
  for (const std::string& name : classes) {
    const std::optional<std::int64_t> number = whole_number(name);
    if (!number) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

std::vector<std::string> sorted_classes(
    const std::vector<FoundPicture>& found) {
  std::vector<std::string> classes;
  for (const FoundPicture& picture : found)
    if (picture.has_class &&
        (classes.empty() || classes.back() != picture.of_class))
      classes.push_back(picture.of_class);
  std::ranges::sort(classes);
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  return classes;
}

}  // namespace

void number_classes(const std::vector<FoundPicture>& found,
                    const std::vector<std::string>& declared,
                    PictureFiles& into) {
  into.classes = declared.empty() ? sorted_classes(found) : declared;
  const bool folders = std::ranges::any_of(found, &FoundPicture::in_folder);
  if (!folders) into.numbers = numbers_of(into.classes);
  if (!into.numbers.empty() && declared.empty()) {
    std::ranges::sort(into.numbers);
    std::ranges::transform(
        into.numbers, into.classes.begin(),
        [](std::int64_t one) { return std::to_string(one); });
  }
  std::unordered_map<std::string_view, std::int32_t> places;
  for (const std::string& name : into.classes)
    places.emplace(name, static_cast<std::int32_t>(places.size()));
  for (const FoundPicture& picture : found)
    into.of_class.push_back(picture.has_class ? places.at(picture.of_class)
                                              : -1);
}

void renumber_folders(const std::vector<std::string>& declared,
                      PictureFiles& files) {
  const DeclaredClasses allowed(declared);
  std::vector<std::int32_t> places;
  for (const std::string& name : files.classes) {
    if (std::ranges::find(files.empty, name) == files.empty.end())
      allowed.check(name, files.root + "/" + name);
    places.push_back(static_cast<std::int32_t>(
        std::ranges::find(declared, name) - declared.begin()));
  }
  for (std::int32_t& of : files.of_class)
    of = places[static_cast<std::size_t>(of)];
  files.classes = declared;
}

void DeclaredClasses::check(const std::string& of_class,
                            const std::string& place) const {
  if (known_.empty() || known_.contains(of_class)) return;
  std::string expected;
  for (std::size_t at = 0; at < std::min(classes_.size(), kMostShown); ++at)
    expected += (at == 0 ? "'" : ", '") + classes_[at] + "'";
  if (classes_.size() > kMostShown)
    expected += " or another of " + std::to_string(classes_.size());
  const std::string near = nearest(of_class, classes_);
  refuse("images.unknown_class", place,
         "found the class " + shown_text(of_class) + ", expected " + expected,
         (near.empty() ? "correct the class" : "did you mean '" + near + "'?") +
             std::string(", or add it to \"source.classes\""));
}

}  // namespace penstock::images
