// A scan that writes a store meanwhile, where that fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/base/fake/test_folder.h"
#include "penstock/dataset/table/scan.h"
#include "penstock/dataset/table/table_dataset.h"
#include "penstock/sources/fake/fake_store.h"

namespace penstock {
namespace {

using testing::ElementsAre;

constexpr std::int64_t kRows = 40'000;

/// The bytes of a text. Its encoder refuses one with a '!', and statistics.
class Texts final : public FieldKind {
 public:
  Texts()
      : FieldKind({.columns = {{.column = "text",
                                .as = ReadAs::value,
                                .setting = "text"}},
                   .stored = {.element_bytes = 1},
                   .outputs = {{.name = "text",
                                .dtype = Dtype::uint8,
                                .lengths = Lengths::packed}},
                   .recipe = "texts"}) {}

  std::shared_ptr<const BoundField> bind(FieldColumns columns) const override {
    return std::make_shared<Bound>(columns.at[0]);
  }

 private:
  struct Parser final : FieldParser {
    explicit Parser(std::size_t column) : column_(column) {}
    void parse(const Block& block, Values& out, Faults&) override {
      for (std::int64_t row = 0; row < block.rows; ++row) {
        const std::string_view text = block.columns[column_].text(row);
        out.bytes.append(text.data(), text.size());
        out.end_row();
      }
    }
    const std::size_t column_;
  };
  struct Encoder final : FieldEncoder {
    void encode(std::span<const ValueRow> rows, const StoredRows& out,
                Faults& faults) override {
      for (std::size_t row = 0; row < rows.size(); ++row) {
        if (std::ranges::count(rows[row], std::byte('!')) > 0)
          faults.reject({.row = static_cast<std::int64_t>(row),
                         .place = "text",
                         .why = "found a '!'"});
        out.runs->bytes.append(rows[row].data(), rows[row].size());
        out.runs->end_row();
      }
    }
  };
  struct Bound final : BoundField {
    explicit Bound(std::size_t column) : column_(column) {}
    std::unique_ptr<FieldParser> parser() const override {
      return std::make_unique<Parser>(column_);
    }
    std::unique_ptr<FieldEncoder> encoder(const Json& statistics,
                                          const std::string&) const override {
      if (!statistics.is_null())
        throw Error(ErrorKind::request, {.code = "statistics.other",
                                         .what = "they are of another field"});
      return std::make_unique<Encoder>();
    }
    const std::size_t column_;
  };
};

/// The real ones, of which a store's n-th piece finds no room. Thread-safe.
class FullDisk final : public FileSystem {
 public:
  int fails_at = 0;                      ///< 0: none
  std::function<void()> appending = {};  ///< called before each piece
  std::atomic<int> appended{0};          ///< pieces, the one that failed too

  std::string read(const std::filesystem::path& path) override {
    return real_files().read(path);
  }
  void append_line(const std::filesystem::path& path, std::string_view line,
                   Readers readers) override {
    real_files().append_line(path, line, readers);
  }
  void make_folders(const std::filesystem::path& path,
                    Readers readers) override {
    real_files().make_folders(path, readers);
  }
  std::unique_ptr<FileWriter> create(const std::filesystem::path& path,
                                     Readers readers) override {
    return std::make_unique<Writer>(*this, real_files().create(path, readers));
  }
  std::unique_ptr<FileMapping> map(const std::filesystem::path& path) override {
    return real_files().map(path);
  }
  std::unique_ptr<ScratchFile> scratch(
      const std::filesystem::path& folder) override {
    return real_files().scratch(folder);
  }
  void link_to(const std::filesystem::path& target,
               const std::filesystem::path& link) override {
    real_files().link_to(target, link);
  }

 private:
  class Writer final : public FileWriter {
   public:
    Writer(FullDisk& disk, std::unique_ptr<FileWriter> real)
        : disk_(disk), real_(std::move(real)) {}
    void append(std::span<const std::byte> bytes) override {
      const int number = ++disk_.appended;
      if (disk_.appending) disk_.appending();
      if (number == disk_.fails_at)
        throw Error(ErrorKind::request, {.code = "file.write",
                                         .what = "cannot write the file",
                                         .why = "No space left on device"});
      real_->append(bytes);
    }
    void commit(Lasting lasting) override { real_->commit(lasting); }

   private:
    FullDisk& disk_;
    const std::unique_ptr<FileWriter> real_;
  };
};

std::string text_of(std::int64_t row) {
  return std::string(static_cast<std::size_t>(50 + row * 37 % 100),
                     static_cast<char>('a' + row % 26));
}

class ScanToStore : public testing::TestWithParam<int> {
 protected:
  ScanToStore() {
    options_.fields = {{"text", std::make_shared<Texts>()}};
    options_.workers = GetParam();
    open(-1);
  }
  /// The encoder refuses that row.
  void open(std::int64_t bad_row) {
    Block block{.rows = kRows};
    Column texts{.type = ColumnType::text};
    for (std::int64_t row = 0; row < kRows; ++row)
      texts.append_text(row == bad_row ? "!" : text_of(row));
    block.columns.push_back(std::move(texts));
    source_ = std::make_unique<FakeStore>(std::vector<std::string>{"text"},
                                          std::move(block),
                                          requests_of(options_.fields));
  }
  /// The store's runs.
  std::string scan(FullDisk& disk, std::optional<std::size_t> most = {}) {
    const std::filesystem::path file = folder_.path("stores/s.store");
    const BoundFields bound = bind_fields(options_.fields, *source_);
    StoreOfScan store(disk, file,
                      RowEncoder(bound, options_.fields,
                                 layout_of(options_.fields), {Json()}),
                      1);
    const ScanParts parts(real_files(), ScanParts::folder_of(file), bound);
    Spill spill(real_files(), folder_.path("stores"), "a fake store");
    scan_table(*source_,
               {.fields = bound,
                .names = {"text"},
                .columns = {"text"},
                .lends_values = true},
               options_,
               {.bytes = most,
                .why = "a test",
                .readers = std::max(1, options_.workers)},
               spill, &parts, &store);
    EXPECT_EQ(store.lengths()->rows(), kRows);
    store.writer().seal({});
    const Store made(real_files(), file);
    const std::span<const std::byte> runs = made.checked("runs/0");
    return {reinterpret_cast<const char*>(runs.data()), runs.size()};
  }
  std::string code_of_scan(FullDisk& disk,
                           std::optional<std::size_t> most = {}) {
    try {
      scan(disk, most);
    } catch (const Error& error) {
      return error.parts().code;
    }
    return "no error";
  }
  void expect_only_parts() {
    std::vector<std::string> names;
    for (const auto& entry :
         std::filesystem::directory_iterator(folder_.path("stores")))
      names.push_back(entry.path().filename().string());
    EXPECT_THAT(names, ElementsAre("s.store.parts"));
    for (const auto& part : std::filesystem::directory_iterator(
             folder_.path("stores/s.store.parts")))
      EXPECT_EQ(part.path().extension(), ".part") << part.path();
  }
  static std::string expected() {
    std::string all;
    for (std::int64_t row = 0; row < kRows; ++row) all += text_of(row);
    return all;
  }

  const TestFolder folder_;
  TableDatasetOptions options_;
  std::unique_ptr<FakeStore> source_;
};

TEST_P(ScanToStore, GoesOnAfterADiskThatWasFull) {
  for (const int fails_at : {3, 30, 60}) {
    std::filesystem::remove_all(folder_.path("stores"));
    FullDisk full;
    full.fails_at = fails_at;
    EXPECT_EQ(code_of_scan(full), "file.write");
    EXPECT_EQ(full.appended, fails_at) << "nothing is written after it";
    EXPECT_LE(source_->counts().readers_open, 0);
    expect_only_parts();
    FullDisk disk;
    EXPECT_EQ(scan(disk), expected());
    EXPECT_GT(disk.appended, 60);
  }
}

TEST_P(ScanToStore, EndsAtARowThatItsTensorCannotHold) {
  open(kRows / 2);
  FullDisk disk;
  EXPECT_EQ(code_of_scan(disk), "transform.range");
  expect_only_parts();
}

// Behind a partition that takes long to write.
TEST_P(ScanToStore, CountsWhatWaitsToBeWritten) {
  if (GetParam() < 2) return;  // nothing waits
  FullDisk disk;
  disk.appending = [&] {
    if (source_->counts().rows == 0) return;  // the scan has not begun
    std::int64_t before = -1;
    while (before != source_->counts().rows) {
      before = source_->counts().rows;
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
  };
  EXPECT_EQ(code_of_scan(disk, 400'000), "scan.too_large");
  EXPECT_LT(source_->counts().rows, kRows);
}

TEST_P(ScanToStore, RefusesStatisticsOfAnotherField) {
  options_.cache = "disk";
  options_.store_dir = folder_.path("stores");
  options_.resumable = true;
  options_.source.version = "1";
  std::unique_ptr<Device> device = open_device({.kind = "cpu"});
  options_.statistics = Json::parse(R"({"text": {"mean": 1}})", "test");
  try {
    TableDataset::prepare(options_, std::move(source_), *device);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "statistics.other");
  }
  open(-1);
  options_.statistics.reset();
  auto set = TableDataset::prepare(options_, std::move(source_), *device);
  EXPECT_EQ(set->runs(0)->rows(), kRows);
}

INSTANTIATE_TEST_SUITE_P(Workers, ScanToStore, testing::Values(0, 1, 8));

}  // namespace
}  // namespace penstock
