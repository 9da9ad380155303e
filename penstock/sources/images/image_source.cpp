#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "penstock/base/error.h"
#include "penstock/base/file.h"
#include "penstock/base/log.h"
#include "penstock/base/once.h"
#include "penstock/sources/blocks.h"
#include "penstock/sources/files/file_source.h"
#include "penstock/sources/files/open_file.h"
#include "penstock/sources/images/find_pictures.h"
#include "penstock/sources/plugin.h"
#include "penstock/sources/schema.h"
#include "penstock/sources/side_by_side.h"
#include "penstock/sources/sources.h"

namespace penstock::images {
namespace {

enum class Part : std::uint8_t { image, path, of_class };

Schema schema_of(const PictureFiles& files) {
  Schema schema{
      .columns = {{.name = files.media->column, .declared = "bytes"},
                  {.name = "path", .declared = "text", .text = true}}};
  const bool numbers = !files.numbers.empty();
  if (files.have_classes())
    schema.columns.push_back({.name = "class",
                              .declared = numbers ? "int64" : "text",
                              .text = !numbers,
                              .values = files.classes});
  return schema;
}

/// What the source and its readers share; immutable.
struct Opened {
  PictureFiles files;
  std::vector<Part> parts;  // by request
  std::vector<ColumnType> types;
  StopFlag stop;
  std::int64_t at_ns = file_clock_ns();  ///< before the files are listed
  bool listed = false;  ///< all of them were there, unlike those of `labels`
};

void add_request(const ColumnRequest& request, const Schema& schema,
                 const std::string& place, Opened& opened) {
  const ColumnInfo& column =
      column_of(schema, request.column, request.setting, place);
  const auto part = static_cast<Part>(&column - schema.columns.data());
  opened.parts.push_back(part);
  // Classes that are numbers are texts to who takes `values` in their order.
  const bool as_number = request.as == ReadAs::number ||
                         request.as == ReadAs::integer ||
                         (request.as == ReadAs::value && !request.coded);
  if (part == Part::of_class && !opened.files.numbers.empty() && as_number) {
    opened.types.push_back(ColumnType::int64);
    return;
  }
  if (request.as != ReadAs::value)
    throw Error(ErrorKind::request,
                {.code = "source.column_type",
                 .what = "cannot read column '" + column.name + "'",
                 .where = request.setting,
                 .why = "the column holds " + column.declared +
                        ", but numbers or JSON are needed",
                 .next = part == Part::image
                             ? std::string("use \"") +
                                   opened.files.media->kind_of_field +
                                   "\" for " + opened.files.media->one + "s"
                             : "use \"category\" for classes"});
  opened.types.push_back(part == Part::image ? ColumnType::binary
                                             : ColumnType::text);
}

Json identity_of(const Opened& opened, const SourceSpec& spec) {
  Json identity(Json::Object{});
  identity["kind"] = spec.kind;
  identity["place"] = spec.path;
  Json columns(Json::Array{});
  const char* const names[] = {opened.files.media->column, "path", "class"};
  for (Part part : opened.parts)
    columns.push_back(names[static_cast<std::size_t>(part)]);
  identity["columns"] = std::move(columns);
  identity["files"] = static_cast<std::int64_t>(opened.files.size());
  identity["version"] = opened.files.version;
  return identity;
}

/// Of all files: a picture that is rewritten keeps its name. One that has gone
/// since is a bad sample when it is read.
std::string stamps_of(const Opened& opened) {
  const PictureFiles& files = opened.files;
  FileStamps all;
  for (const files::DataFile& tar : files.tars) all.add(tar.stamp);
  const std::size_t count = files.members.empty() ? files.size() : 0;
  constexpr std::size_t kTogether = 1024;
  std::vector<std::string> digests((count + kTogether - 1) / kTogether);
  side_by_side(digests.size(), [&](std::size_t piece) {
    end_if_stopped(opened.stop);
    FileStamps stamps;
    const std::size_t end = std::min(count, (piece + 1) * kTogether);
    for (std::size_t at = piece * kTogether; at < end; ++at)
      stamps.add(stamp_of(files.file_of(at)));
    digests[piece] = stamps.hex();
  });
  for (const std::string& digest : digests) all.add_all(digest);
  return all.hex();
}

class ImageReader final : public Reader {
 public:
  ImageReader(std::shared_ptr<const Opened> opened, std::string shown)
      : opened_(std::move(opened)), shown_(std::move(shown)) {}

  void read(const ReadRequest& request, Block& out) override {
    PENSTOCK_ASSERT(request.keys == nullptr, "files have no keys");
    if (!is_block_of(opened_->types, out))
      out = block_of(opened_->types);
    else
      out.clear();
    for (std::int64_t position : request.positions) {
      end_if_stopped(opened_->stop);
      check_position(position);
      for (std::size_t c = 0; c < opened_->parts.size(); ++c)
        append(static_cast<std::size_t>(position), c, out);
      ++out.rows;
    }
  }

 private:
  void check_position(std::int64_t position) const {
    const auto rows = static_cast<std::int64_t>(opened_->files.size());
    if (position >= 0 && position < rows) return;
    throw Error(ErrorKind::source,
                {.code = "source.row_gone",
                 .what = "cannot read position " + std::to_string(position),
                 .where = shown_,
                 .why = "the source has " + std::to_string(rows) + " " +
                        opened_->files.media->one + "s",
                 .next = "start the run again"});
  }

  void append(std::size_t at, std::size_t c, Block& out) {
    const PictureFiles& files = opened_->files;
    Column& column = out.columns[c];
    const std::int32_t of_class = files.of_class[at];
    if (opened_->parts[c] == Part::path) {
      column.append_text(files.names->name(at));
    } else if (opened_->parts[c] == Part::image) {
      const std::size_t before = column.values.size();
      std::string why = read_bytes(at, column.values);
      if (why.empty()) {
        column.append_text({});  // which is there
        return;
      }
      column.values.resize(before);
      column.append_null();
      out.problems.push_back(
          {out.rows, c,
           "cannot be read from '" + files.file_of(at) + "': " + why});
    } else if (of_class >= 0 && column.type == ColumnType::int64) {
      column.append_int64(files.numbers[static_cast<std::size_t>(of_class)]);
    } else if (of_class >= 0) {
      column.append_text(files.classes[static_cast<std::size_t>(of_class)]);
    } else {
      column.append_null();
    }
  }

  // As encoded; no picture that is decoded has more.
  static constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
  static std::string too_large(std::int64_t bytes) {
    return "it has " + std::to_string(bytes) + " bytes, and " +
           std::to_string(kMostBytes) + " are the limit";
  }

  /// What the system says of a file that it did not open; throws where the
  /// file is not to blame.
  static std::string why_not_opened(const std::string& path) {
    const int reason = errno;
    refuse_shortage(ErrorKind::source, "open the file", path, reason);
    return penstock::why_not_opened(reason);
  }

  /// Room for so many bytes more.
  static std::span<char> grown(Bytes& to, std::int64_t bytes) {
    const auto count = static_cast<std::size_t>(bytes);
    to.resize(to.size() + count);
    return {to.mutable_data<char>() + to.size() - count, count};
  }

  std::string read_member(std::size_t at, Bytes& to) {
    const TarMember& member = opened_->files.members[at];
    if (member.container != open_tar_) {
      tar_ = files::open_file(opened_->files.file_of(at));
      open_tar_ = tar_ ? member.container : -1;
    }
    if (!tar_) {
      const int reason = errno;
      files::check_same_file(opened_->files.tar_of(at));
      errno = reason;
      return why_not_opened(opened_->files.file_of(at));
    }
    if (member.bytes > kMostBytes) return too_large(member.bytes);
    std::string why =
        files::read_at(tar_, member.begin, grown(to, member.bytes));
    files::check_same_file(opened_->files.tar_of(at));
    return why;
  }

  /// Appends a picture's bytes; what went wrong, with which there may be some.
  std::string read_bytes(std::size_t at, Bytes& to) {
    if (!opened_->files.members.empty()) return read_member(at, to);
    const std::string path = opened_->files.file_of(at);
    const Descriptor file = files::open_file(path);
    if (!file) {
      if (opened_->listed) check_still_there(path);
      return why_not_opened(path);
    }
    struct stat found {};
    if (::fstat(file.number(), &found) != 0) return std::strerror(errno);
    if (found.st_size > kMostBytes) return too_large(found.st_size);
    std::string why = files::read_at(file, 0, grown(to, found.st_size));
    if (::fstat(file.number(), &found) == 0)
      check_unchanged_since(opened_->at_ns, stamp_of(found), path);
    return why;
  }

  /// Throws files.changed if the file was listed and is gone. A link that
  /// points nowhere is a bad sample, as it was when it was listed.
  static void check_still_there(const std::string& path) {
    const int reason = errno;
    struct stat found {};
    if (reason == ENOENT && ::lstat(path.c_str(), &found) != 0)
      throw Error(
          ErrorKind::source,
          {.code = "files.changed",
           .what = "cannot read the file",
           .where = path,
           .why = "the file was listed, but no longer exists",
           .next = "restore the file, or start the run again without the "
                   "file"});
    errno = reason;
  }

  const std::shared_ptr<const Opened> opened_;
  const std::string shown_;
  std::int32_t open_tar_ = -1;
  Descriptor tar_;
};

class ImageSource final : public Source {
 public:
  ImageSource(std::shared_ptr<const Opened> opened, SourceFacts facts)
      : Source(std::move(facts)), opened_(std::move(opened)) {}

  std::string version_of_copy() const override {
    looked_.call([this] { copy_ = stamps_of(*opened_); });
    return copy_;
  }
  RowCount count() const override {
    return {.rows = static_cast<std::int64_t>(opened_->files.size()),
            .exact = true};
  }
  std::string place_of(std::int64_t position) const override {
    const auto at = static_cast<std::size_t>(position);
    if (position < 0 || at >= opened_->files.size()) return {};
    return std::string(opened_->files.names->name(at));
  }
  std::unique_ptr<Reader> open_reader() override {
    return std::make_unique<ImageReader>(opened_, shown());
  }

 private:
  const std::shared_ptr<const Opened> opened_;
  mutable Once looked_;
  mutable std::string copy_;
};

void refuse_condition(const SourceSpec& spec) {
  if (spec.where.empty()) return;
  throw Error(
      ErrorKind::request,
      {.code = "source.where",
       .what = "cannot use the condition",
       .where = "source.where",
       .why = std::string(media_of(spec).one) + "s have no columns to compare",
       .next = std::string("list the ") + media_of(spec).one +
               "s to read in a file, and name it as \"labels\""});
}

std::unique_ptr<Source> open_images(const SourceSpec& spec,
                                    const std::vector<ColumnRequest>& requests,
                                    SourceOptions options) {
  refuse_condition(spec);
  auto opened = std::make_shared<Opened>();
  opened->stop = options.stop;
  opened->files = find_pictures(spec, options.stop);
  opened->listed =
      std::any_cast<const PictureSettings&>(spec.own).labels.empty();
  if (!opened->files.unread.empty())
    log(LogLevel::warning, opened->files.unread);
  SourceFacts facts{.shown = spec.path,
                    .schema = schema_of(opened->files),
                    .abilities = {.by_position = true, .sorted = true}};
  if (std::ranges::find(requests, "class", &ColumnRequest::column) !=
      requests.end())
    check_classes(spec, opened->files, options.fitted);
  for (const ColumnRequest& request : requests)
    add_request(request, facts.schema, spec.path, *opened);
  // Integers beside values would say places of these (ColumnInfo).
  if (std::ranges::count(opened->types, ColumnType::int64) > 0)
    facts.schema.columns.back().values.clear();
  facts.types = opened->types;
  // A picture's key is its path; a sound's, which may be one of several rows
  // elsewhere, its number.
  if (spec.kind == "images") facts.key = ColumnType::text;
  facts.identity = identity_of(*opened, spec);
  facts.parts = opened->files.names;
  return std::make_unique<ImageSource>(std::move(opened), std::move(facts));
}

Schema read_images_schema(const SourceSpec& spec) {
  refuse_condition(spec);
  return schema_of(find_pictures(spec, nullptr));
}

constexpr SourcePlugin kPlugin{.open_source = open_images,
                               .read_schema = read_images_schema,
                               .create_table = files::refuse_writing};

}  // namespace
}  // namespace penstock::images

extern "C" const penstock::SourcePlugin* penstock_source_part() {
  return &penstock::images::kPlugin;
}
