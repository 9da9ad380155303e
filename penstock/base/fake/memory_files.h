#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/file.h"

namespace penstock {

/// Files in memory, for tests: calls are counted, and from the one that is
/// named on they fail. A mapping shows later changes of its file.
class MemoryFiles final : public FileSystem {
 public:
  std::map<std::string, std::shared_ptr<std::string>> files;
  int calls = 0;
  int fails_at = -1;     ///< this call; -1: none
  bool recovers = true;  ///< later calls succeed again

  std::string read(const std::filesystem::path& path) override {
    call(path);
    return *found(path);
  }
  void append_line(const std::filesystem::path& path, std::string_view line,
                   Readers) override {
    call(path);
    auto& file = files[path.string()];
    if (file == nullptr) file = std::make_shared<std::string>();
    file->append(line).append("\n");
  }
  void make_folders(const std::filesystem::path& path, Readers) override {
    call(path);
  }
  std::unique_ptr<FileWriter> create(const std::filesystem::path& path,
                                     Readers) override {
    call(path);
    return std::make_unique<Writer>(*this, path);
  }
  std::unique_ptr<FileMapping> map(const std::filesystem::path& path) override {
    call(path);
    return std::make_unique<Mapping>(found(path));
  }
  std::unique_ptr<ScratchFile> scratch(
      const std::filesystem::path& folder) override {
    call(folder);
    return std::make_unique<Scratch>(*this, folder);
  }
  void link_to(const std::filesystem::path& target,
               const std::filesystem::path& link) override {
    call(link);
    files[link.string()] = found(target);
  }

 private:
  class Writer final : public FileWriter {
   public:
    Writer(MemoryFiles& of, std::filesystem::path path)
        : of_(of), path_(std::move(path)) {}
    void append(std::span<const std::byte> bytes) override {
      of_.call(path_);
      bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    void commit(Lasting) override {
      of_.call(path_);
      of_.files[path_.string()] =
          std::make_shared<std::string>(std::move(bytes_));
    }

   private:
    MemoryFiles& of_;
    const std::filesystem::path path_;
    std::string bytes_;
  };

  class Mapping final : public FileMapping {
   public:
    explicit Mapping(std::shared_ptr<std::string> file)
        : file_(std::move(file)) {}
    std::span<const std::byte> bytes() const override {
      return std::as_bytes(std::span(*file_));
    }
    std::int64_t lost_pages() const override { return 0; }
    void patch(std::size_t begin, std::span<const std::byte> bytes) override {
      std::memcpy(file_->data() + begin, bytes.data(), bytes.size());
    }

   private:
    const std::shared_ptr<std::string> file_;
  };

  class Scratch final : public ScratchFile {
   public:
    Scratch(MemoryFiles& of, std::filesystem::path folder)
        : of_(of), folder_(std::move(folder)) {}
    void append(std::span<const std::byte> bytes) override {
      of_.call(folder_);
      bytes_->append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    std::unique_ptr<FileMapping> map() override {
      of_.call(folder_);
      return std::make_unique<Mapping>(bytes_);
    }

   private:
    MemoryFiles& of_;
    const std::filesystem::path folder_;
    const std::shared_ptr<std::string> bytes_ = std::make_shared<std::string>();
  };

  void call(const std::filesystem::path& path) {
    int number = calls++;
    if (fails_at < 0 || number < fails_at || (recovers && number > fails_at))
      return;
    throw Error(ErrorKind::request, {.code = "file.write",
                                     .what = "cannot write the file",
                                     .where = path.string(),
                                     .why = "No space left on device",
                                     .next = "free some space there"});
  }
  std::shared_ptr<std::string> found(const std::filesystem::path& path) {
    auto file = files.find(path.string());
    if (file != files.end()) return file->second;
    throw Error(ErrorKind::source, {.code = "file.read",
                                    .what = "cannot map the file",
                                    .where = path.string(),
                                    .why = "No such file or directory",
                                    .next = "check the path"});
  }
};

}  // namespace penstock
