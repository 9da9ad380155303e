#include <arrow/filesystem/s3fs.h>
#include <arrow/result.h>
#include <arrow/status.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>

#include "penstock/base/once.h"
#include "penstock/sources/files/object_store.h"

// The plugin for object stores: Amazon S3, and what answers as it does, by
// Arrow's own file system. Credentials come from where Amazon's programs look
// for them: the environment, a profile, the machine's role.

namespace penstock::files {
namespace {

constexpr int kTries = 3;
// A stop is heard between requests: all tries of one end within 40 seconds. The
// library's own limit of an answer is 3 seconds.
constexpr double kConnectS = 5, kAnswerS = 10;

[[noreturn]] void fail(const arrow::Status& status, const std::string& path) {
  refuse_stored(path, status.message());
}

template <class Value>
Value checked(arrow::Result<Value> result, const std::string& path) {
  if (!result.ok()) fail(result.status(), path);
  return std::move(result).ValueUnsafe();
}

/// "s3://bucket/key" as Arrow's file system has it: "bucket/key".
std::string inside(const std::string& path) { return path.substr(5); }

/// Lets the library end with the program. It makes objects that live until then
/// when they are first needed, which must outlive its end: so what is asked for
/// here after each kind of call comes before the end of these. Once is enough
/// of several calls.
void end_s3_at_exit() {
  static std::atomic<int> asked{0};
  constexpr int kCalls = 16;  // exit() has room for more
  if (asked.fetch_add(1) < kCalls)
    std::atexit([] { (void)arrow::fs::EnsureS3Finalized(); });
}

class S3File final : public StoredFile {
 public:
  S3File(std::shared_ptr<arrow::io::RandomAccessFile> file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  std::size_t read(std::int64_t offset, std::span<char> to) const override {
    auto got = file_->ReadAt(offset, std::ssize(to), to.data());
    end_s3_at_exit();
    return static_cast<std::size_t>(checked(std::move(got), path_));
  }

 private:
  const std::shared_ptr<arrow::io::RandomAccessFile> file_;
  const std::string path_;
};

class S3Store final : public ObjectStore {
 public:
  explicit S3Store(std::shared_ptr<arrow::fs::S3FileSystem> files)
      : files_(std::move(files)) {}

  std::vector<StoredObject> list(const std::string& path) const override {
    auto asked = files_->GetFileInfo(inside(path));
    end_s3_at_exit();
    const arrow::fs::FileInfo info = checked(std::move(asked), path);
    std::vector<StoredObject> found;
    if (info.IsFile()) found.push_back(object(info));
    if (info.type() != arrow::fs::FileType::Directory) return found;
    arrow::fs::FileSelector below;
    below.base_dir = inside(path);
    below.recursive = true;
    for (const arrow::fs::FileInfo& one :
         checked(files_->GetFileInfo(below), path))
      if (one.IsFile()) found.push_back(object(one));
    return found;
  }

  std::unique_ptr<StoredFile> open(const StoredObject& file) const override {
    arrow::fs::FileInfo info(inside(file.path), arrow::fs::FileType::File);
    info.set_size(file.bytes);
    return std::make_unique<S3File>(
        checked(files_->OpenInputFile(info), file.path), file.path);
  }

 private:
  static StoredObject object(const arrow::fs::FileInfo& info) {
    return {.path = "s3://" + info.path(),
            .bytes = info.size(),
            .changed_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                              info.mtime().time_since_epoch())
                              .count()};
  }

  const std::shared_ptr<arrow::fs::S3FileSystem> files_;
};

/// Once for the program: the library must hear of its end, too.
void begin_s3(const std::string& path) {
  static Once once;
  once.call([&] {
    arrow::fs::S3GlobalOptions options = arrow::fs::S3GlobalOptions::Defaults();
    options.log_level = arrow::fs::S3LogLevel::Off;  // errors say it all
    if (arrow::fs::IsS3Initialized()) return;        // by pyarrow
    const arrow::Status status = arrow::fs::InitializeS3(options);
    if (!status.ok()) fail(status, path);
  });
}

/// The value of an option of a URI, which is then taken out of it.
std::string taken_out(std::string& uri, const std::string& name) {
  const std::size_t begin = uri.find(name + "=", uri.find('?'));
  if (uri.find('?') == uri.npos || begin == uri.npos) return "";
  const std::size_t end = std::min(uri.find('&', begin), uri.size());
  const std::string value =
      uri.substr(begin + name.size() + 1, end - begin - name.size() - 1);
  uri.erase(begin, end == uri.size() ? end - begin : end + 1 - begin);
  if (uri.back() == '?' || uri.back() == '&') uri.pop_back();
  return value;
}

std::shared_ptr<const ObjectStore> connect(const std::string& given) {
  const std::string path = path_of_stored(given);
  begin_s3(path);
  std::string uri = given;
  const std::string anonymous = taken_out(uri, "anonymous");
  // A pattern is no URI to Arrow, which needs the bucket alone.
  const std::size_t slash = path.find('/', 5);
  uri = path.substr(0, slash) + uri.substr(path.size());
  arrow::fs::S3Options options =
      checked(arrow::fs::S3Options::FromUri(uri), path);
  if (anonymous == "true") options.ConfigureAnonymousCredentials();
  options.connect_timeout = kConnectS;
  options.request_timeout = kAnswerS;
  options.retry_strategy =
      arrow::fs::S3RetryStrategy::GetAwsStandardRetryStrategy(kTries);
  return std::make_shared<S3Store>(
      checked(arrow::fs::S3FileSystem::Make(options), path));
}

constexpr ObjectStorePlugin kPlugin{.connect = connect};

}  // namespace
}  // namespace penstock::files

extern "C" const penstock::files::ObjectStorePlugin*
penstock_object_store_part() {
  return &penstock::files::kPlugin;
}
