#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "penstock/loader/loader.h"

namespace penstock {

/// The pictures of a batch beside one another, as the model gets them, with
/// what stands beside them in the batch.
///
/// `tensors` are in host memory. Pictures are the first tensor [rows, channels,
/// height, width] or [rows, height, width, channels] with 1 or 3 channels;
/// floats are stretched from the least to the greatest number of their picture.
/// The captions are the tensors of one number a row, of which integers are
/// named by `classes` where the tensor is called "label", and those of draws.
/// Throws Error(request), code images.show, where there are no pictures.
class ContactSheet {
 public:
  ContactSheet(const std::vector<NamedTensor>& tensors,
               const std::vector<std::string>& classes = {});

  /// All in one picture, without captions.
  std::string png() const;
  /// A page that needs no other file.
  std::string html() const;
  /// As the name ends: .png or .html. Throws Error(request), code images.sheet,
  /// for another ending.
  void write(const std::filesystem::path& path) const;

 private:
  struct Picture {
    std::vector<std::uint8_t> rgb;
    std::string caption;
  };
  int width_ = 0, height_ = 0;
  std::vector<Picture> pictures_;
};

/// The first batch of the pictures of a source, named by its URI, as the train
/// side gets them with the settings of an `image` field that are not said: 32
/// pictures of 160 pixels, their classes as labels. Writes `path`. Throws what
/// opening the source throws, and images.sheet.
void write_contact_sheet(const std::string& uri,
                         const std::filesystem::path& path);

}  // namespace penstock
