#include "penstock/inspect/first_files.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/transforms/transforms.h"

namespace penstock {
namespace {

constexpr std::int64_t kMostRows = 1'000'000;  // that are looked at for files

/// The rows of a column that a field of one kind decodes. How a file begins
/// proves little: numbers may begin as MP3 does.
class FilesOf {
 public:
  FilesOf(const char* kind, const Json& settings, const Block& block) {
    Json section;
    section["x"][kind] = settings;
    kind_ = parse_fields(section, "fields")[0].kind;
    bound_ = kind_->bind(
        {.info = {{.name = "x"}}, .types = {block.columns[0].type}, .at = {0}});
    Faults faults;
    bound_->checking_parser()->parse(block, values_, faults);
    std::set<std::int64_t> bad;
    for (const RowFault& fault : faults.rows) bad.insert(fault.row);
    for (std::int64_t row = 0; row < block.rows; ++row)
      if (!bad.contains(row)) rows_.push_back(values_.row(row));
  }

  std::size_t count() const { return rows_.size(); }

  /// The heights and widths of pictures: what is drawn of a whole one.
  std::vector<std::pair<std::int64_t, std::int64_t>> sizes() const {
    std::vector<std::array<std::uint8_t, 3>> pixels(rows_.size());
    std::vector<std::array<std::int32_t, 5>> draws(rows_.size());
    finish(std::array<TensorPlace, 2>{
        TensorPlace{.data = reinterpret_cast<std::byte*>(pixels.data()),
                    .bytes = sizeof(pixels[0])},
        TensorPlace{.data = reinterpret_cast<std::byte*>(draws.data()),
                    .bytes = sizeof(draws[0])}});
    std::vector<std::pair<std::int64_t, std::int64_t>> sizes;
    for (const auto& draw : draws)  // 0: it is damaged
      if (draw[2] > 0) sizes.emplace_back(draw[2], draw[3]);
    return sizes;
  }

  /// Samples of the longest sound before the silence at its end, where rows
  /// have `samples` of them.
  std::size_t longest(std::size_t samples) const {
    std::vector<float> waves(rows_.size() * samples);
    finish(std::array<TensorPlace, 1>{
        TensorPlace{.data = reinterpret_cast<std::byte*>(waves.data()),
                    .bytes = samples * sizeof(float)}});
    std::size_t longest = 0;
    for (std::size_t at = 0; at < waves.size(); ++at)
      if (waves[at] != 0) longest = std::max(longest, at % samples + 1);
    return longest;
  }

 private:
  /// Of all rows. A damaged one is zeros.
  void finish(std::span<const TensorPlace> places) const {
    if (rows_.empty()) return;
    Values runs;
    Faults faults;
    bound_->encoder(Json(), "")->encode(rows_, {.runs = &runs}, faults);
    std::vector<StoredRow> stored;
    for (std::int64_t row = 0; row < runs.rows(); ++row)
      stored.push_back({.run = runs.row(row), .range = {.sample = row}});
    kind_->finisher(true)->finish(stored, {}, places);
  }

  std::shared_ptr<const FieldKind> kind_;
  std::shared_ptr<const BoundField> bound_;
  Values values_;
  std::vector<ValueRow> rows_;  // of `values_`
};

}  // namespace

bool FirstFiles::add(const Column& values, std::int64_t row) {
  if (!first_) first_ = Column{.type = values.type};
  if (values.valid(row))
    first_->append_from(values, row);
  else
    nulls_ = true;
  return first_->length < kRows;
}

Block FirstFiles::take() {
  Block block;
  if (!first_) return block;
  block.rows = first_->length;
  block.columns.push_back(std::move(*first_));
  return block;
}

double FirstFiles::longest_sound(const std::string& name) {
  constexpr std::int64_t kRate = 2000;  // enough for a length
  const Block block = take();
  if (block.rows == 0) return 0;
  Json settings;
  settings["column"] = name;
  settings["rate"] = kRate;
  settings["seconds"] = kLongestSound;
  settings["crop"] = "start";
  settings["store"] = "encoded";
  const std::size_t longest =
      FilesOf("audio", settings, block)
          .longest(static_cast<std::size_t>(kLongestSound * kRate));
  return static_cast<double>(longest) / kRate;
}

std::optional<Media> FirstFiles::media(const std::string& name) {
  const Block block = take();
  if (block.rows == 0) return std::nullopt;
  Json image, audio;
  image["column"] = audio["column"] = name;
  image["size"] = audio["seconds"] = std::int64_t{1};
  image["train"] = "resize";
  image["flip"] = std::int64_t{0};
  image["record_draws"] = true;
  // Some may be damaged; a column of bytes may hold a file by chance.
  std::size_t values = 0;
  for (std::int64_t row = 0; row < block.rows; ++row)
    values += block.columns[0].text(row).empty() ? 0 : 1;
  auto are_most = [&](std::size_t files) {
    return files > 0 && 2 * files >= values;
  };
  try {
    const auto sizes = FilesOf("image", image, block).sizes();
    if (are_most(sizes.size())) {
      const bool all_alike =
          std::ranges::count(sizes, sizes[0]) == std::ssize(sizes);
      return Media{.kind = "image",
                   .height = all_alike ? sizes[0].first : 0,
                   .width = all_alike ? sizes[0].second : 0,
                   .nulls = nulls_};
    }
    if (are_most(FilesOf("audio", audio, block).count()))
      return Media{.kind = "audio", .nulls = nulls_};
  } catch (const Error&) {
    // No part that decodes them is there.
  }
  return std::nullopt;
}

namespace {

FirstFiles first_files(const SourceSpec& spec, const ColumnRequest& column,
                       StopFlag stop) {
  const auto source =
      open_source(spec, {column}, {.stop = stop, .keys = false});
  FirstFiles first;
  std::int64_t rows = 0;
  bool more = true;
  for (const Partition& part : source->partitions(1)) {
    source->open_reader()->scan(
        part, {.rows = FirstFiles::kRows}, [&](KeyList&, Block& block) {
          end_if_stopped(stop);
          for (std::int64_t row = 0; more && row < block.rows; ++row)
            more = first.add(block.columns[0], row);
          rows += block.rows;
          more = more && rows < kMostRows;
          return more;
        });
    if (!more) break;
  }
  return first;
}

}  // namespace

std::optional<Media> media_in(const SourceSpec& spec,
                              const ColumnRequest& column, StopFlag stop) {
  return first_files(spec, column, stop).media(column.column);
}

double longest_sound(const SourceSpec& spec, const std::string& column,
                     StopFlag stop) {
  return first_files(spec, {.column = column, .as = ReadAs::value}, stop)
      .longest_sound(column);
}

}  // namespace penstock
