#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/loader/loader.h"

namespace penstock {

/// The pictures of a batch beside one another, as the model gets them, with
/// what stands beside them in the batch.
///
/// `tensors` are in host memory. Pictures are the first tensor [rows, channels,
/// height, width] or [rows, height, width, channels] with 1 or 3 channels;
/// floats are stretched from the least to the greatest number of their picture.
/// The captions are the tensors of one number a row, of which integers are
/// named by `classes` of that tensor, and those of draws; of a row of `bad`
/// what is wrong with it, and nothing else. Throws Error(request), code
/// images.show, where there are no pictures.
class ContactSheet {
 public:
  using Classes = std::map<std::string, std::vector<std::string>>;
  using Bad = std::map<std::size_t, std::string>;

  ContactSheet(const std::vector<NamedTensor>& tensors,
               const Classes& classes = {}, const Bad& bad = {});

  /// All in one picture, each above its label: what the captions say but for
  /// draws and names of tensors, as far as the picture is wide.
  std::string png() const;
  /// A page that needs no other file.
  std::string html() const;
  /// As the name ends: .png or .html. Throws Error(request), code images.sheet,
  /// for another ending.
  void write(const std::filesystem::path& path) const;

 private:
  struct Picture {
    std::vector<std::uint8_t> rgb;
    std::string caption, label;
  };
  int width_ = 0, height_ = 0;
  std::vector<Picture> pictures_;
};

/// What of which a sheet is drawn.
struct SheetQuery {
  Json source;  ///< its section, or a URI; of a job its whole document
  bool is_job = false;
  std::string column;  ///< of the pictures of a source; empty: the likely one
};

/// The first batch as the train side gets it, of 32 pictures: of a job by its
/// own fields, of a source 160 pixels wide by the settings of an `image` field
/// that are not said, with the classes that it knows as labels. Writes `path`.
/// What cannot be decoded is an empty picture, and logged, unless the job puts
/// other samples in its place.
/// Throws what opening the source throws, images.show where it has no such
/// column, and images.sheet.
void write_contact_sheet(const SheetQuery& query,
                         const std::filesystem::path& path);

}  // namespace penstock
