#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/user_file.h"
#include "penstock/dataset/table/table_dataset.h"
#include "penstock/sources/fake/fake_source.h"

namespace penstock {

/// A table of the small pictures of many sizes and kinds in tests/data/images,
/// for tests that see PENSTOCK_TEST_DATA and have the decoders.
struct PicturesDataset {
  FakeTable table;
  TableDatasetOptions options;
  /// Of the field `x`, but for what is kept and where it is finished.
  std::string settings = kinds_of_settings()[0];
  /// Files are kept, and decoded where they are finished.
  bool files = false;
  /// Fields beside it: `, "y": {...}`.
  std::string beside;

  /// Each of them so many times.
  explicit PicturesDataset(const std::string& folder, int times = 2) {
    table.schema.columns = {
        {.name = "id", .declared = "int64", .primary_key = true},
        {.name = "image", .declared = "text"}};
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() != ".json" &&
          entry.path().extension() != ".py")
        files.push_back(entry.path());
    std::ranges::sort(files);
    std::int64_t id = 0;
    for (; times > 0; --times)
      for (const auto& file : files)
        table.rows.push_back(
            {id++, read_user_file(file.string(), "cannot read a picture")});
    options.cache = "ram";
  }
  /// Two of them are PNG files whose damage shows only when they are decoded.
  /// There are as many others as a loader wants that goes on.
  static PicturesDataset with_damaged(const std::string& folder) {
    PicturesDataset all(folder, 24);
    std::string file =
        read_user_file(folder + "/rgb.png", "cannot read a picture");
    char& damaged = file[file.find("IDAT") + 20];
    damaged = static_cast<char>(damaged ^ 0x55);
    for (std::size_t row : {3U, 11U}) all.table.rows[row][1] = file;
    return all;
  }

  /// One that is small and sound is rejected by a field `y` beside it.
  static PicturesDataset with_damaged_beside(const std::string& folder) {
    PicturesDataset all(folder, 24);
    all.beside = R"(, "y": {"image": {"column": "beside", "size": 8}})";
    all.table.schema.columns.push_back({.name = "beside", .declared = "text"});
    auto file = [&](const char* name) {
      return FakeCell(
          read_user_file(folder + "/" + name, "cannot read a picture"));
    };
    const FakeCell sound = file("rgb.png"), small = file("odd_16x16.jpg");
    const FakeCell damaged = with_damaged(folder).table.rows[3][1];
    bool found = false;
    for (std::vector<FakeCell>& row : all.table.rows) {
      const bool rejected = !found && row[1] == small;
      row.push_back(rejected ? damaged : sound);
      found = found || rejected;
    }
    return all;
  }

  /// `finish`: "host" or "device".
  std::shared_ptr<const TableDataset> prepare(const std::string& finish,
                                              Device& device) const {
    const TableDatasetOptions with = options_with(finish);
    return TableDataset::prepare(
        with, std::make_unique<FakeSource>(table, requests_of(with)), device);
  }
  TableDatasetOptions options_with(const std::string& finish) const {
    TableDatasetOptions with = options;
    const std::string place =
        files ? R"("decode")"
              : R"("store": {"form": "decoded", "max_side": 40}, "finish")";
    with.fields = parse_fields(
        Json::parse("{\"x\": {\"image\": {" + settings + ", " + place + ": \"" +
                        finish + "\"}}" + beside + "}",
                    "test"),
        "fields");
    return with;
  }

  /// What may stand in `settings`, of files those in colour.
  std::vector<std::string> all_settings() const {
    std::vector<std::string> all = kinds_of_settings();
    if (files)
      std::erase_if(all, [](const std::string& one) {
        return one.find("\"L\"") != one.npos;
      });
    return all;
  }
  static const std::vector<std::string>& kinds_of_settings() {
    static const std::string crop = R"("train": "random_resized_crop", )";
    static const std::string half = R"(, "flip": 0.5)";
    static const std::vector<std::string> all = {
        crop + R"("size": [9, 12], "resize": 14)" + half,
        crop + R"("size": 33, "resize": 40, "layout": "nhwc",
           "interpolation": "bicubic")" +
            half,
        crop + R"("size": [5, 31], "interpolation": "lanczos",
           "dtype": "float32", "mean": [0.485, 0.456, 0.406],
           "std": [0.229, 0.224, 0.225])" +
            half,
        crop + R"("size": [30, 3], "dtype": "float16", "layout": "nhwc",
           "flip": 1)",
        crop + R"("size": 16, "dtype": "bfloat16", "interpolation": "nearest",
           "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.3, 0.4], "val": "resize")" +
            half,
        R"("size": [1, 7], "mode": "L", "dtype": "float32", "train": "resize")" +
            half,
        crop + R"("size": 8, "mode": "L", "scale": [0.9, 1], "flip": 0)",
        R"("size": 12, "resize": 15)"};
    return all;
  }
};

}  // namespace penstock
