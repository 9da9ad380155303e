#include "penstock/sources/arrow/child_scanner.h"

#include <cstdlib>
#include <span>
#include <string>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/json_path.h"
#include "penstock/sources/arrow/python_children.h"

namespace penstock::arrow_files {
namespace {

using Children = std::shared_ptr<PythonChildren>;

/// Those of this process.
const Children& children() {
  static const Children only = std::make_shared<PythonChildren>();
  return only;
}

/// A path need not be a text.
std::string in_hex(const std::string& path) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const char byte : path) {
    hex += kDigits[static_cast<unsigned char>(byte) >> 4];
    hex += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return hex;
}

Json request_for(const char* what, const std::string& path) {
  Json request;
  request["do"] = what;
  request["path"] = in_hex(path);
  return request;
}

std::vector<std::string> texts_in(const Json& list) {
  std::vector<std::string> texts;
  for (const Json& text : list.array()) texts.push_back(text.string());
  return texts;
}

/// Reads chunk after chunk, always in the same child.
class ChildScan final : public ChunkScan {
 public:
  ChildScan(std::shared_ptr<SharedChild> child, Json request)
      : child_(std::move(child)), begin_(std::move(request)) {
    next_["do"] = "next";
    next_["scan"] = begin_["scan"] = child_->next_scan();
  }
  ~ChildScan() override { forget(); }

  void begin(std::int64_t chunk) override {
    begin_["chunk"] = chunk;
    begun_ = false;
  }

  std::shared_ptr<const ArrowTable> next() override {
    return child_->ask([&](PythonChild& child) {
      child.send(std::exchange(begun_, true) ? next_ : begin_);
      const Json answer = child.answer();
      return answer.find("rows") == nullptr ? nullptr : child.read_rows();
    });
  }

 private:
  /// The child sends no answer to this request.
  void forget() try {
    Json request;
    request["do"] = "forget";
    request["scan"] = *begin_.find("scan");
    child_->ask([&](PythonChild& child) { child.send(request); });
  } catch (const std::exception&) {
    // The child has ended, and the scan with it.
  }

  const std::shared_ptr<SharedChild> child_;
  Json begin_, next_;
  bool begun_ = false;
};

class ChildFile final : public ScannedFile {
 public:
  ChildFile(Children children, const std::string& kind, const std::string& path)
      : children_(std::move(children)), request_(request_for("open", path)) {
    request_["kind"] = kind;
    children_->take()->ask([&](PythonChild& child) {
      child.send(request_);
      take(child.answer());
      empty = child.read_rows();
    });
    request_["do"] = "scan";
  }

  std::unique_ptr<ChunkScan> scan(
      const std::vector<std::size_t>& columns) const override {
    Json::Array places(columns.begin(), columns.end());
    Json request = request_;
    request["columns"] = Json(std::move(places));
    return std::make_unique<ChildScan>(children_->take(), std::move(request));
  }

 private:
  void take(const Json& answer) {
    declared = texts_in(*answer.find("declared"));
    meaning = texts_in(*answer.find("meaning"));
    for (const Json& list : answer.find("classes")->array())
      classes.push_back(texts_in(list));
    for (const Json& end : answer.find("chunk_ends")->array())
      chunk_ends.push_back(end.integer());
  }

  const Children children_;
  Json request_;
};

class ChildScanner final : public ArrowScanner {
 public:
  explicit ChildScanner(Children children) : children_(std::move(children)) {}

  std::shared_ptr<const ScannedFile> open(const std::string& kind,
                                          const std::string& path) override {
    return std::make_shared<ChildFile>(children_, kind, path);
  }

 private:
  const Children children_;
};

/// What a child answers of a store, or what the store refuses.
template <class Work>
auto of_child_store(const std::string& path, Work work) {
  try {
    return work();
  } catch (const ScanFailure& failure) {
    files::refuse_stored(path, failure.says);
  }
}

class ChildStoredFile final : public files::StoredFile {
 public:
  ChildStoredFile(Children children, Json request, std::string path)
      : children_(std::move(children)),
        request_(std::move(request)),
        path_(std::move(path)) {}

  std::size_t read(std::int64_t offset, std::span<char> to) const override {
    return of_child_store(path_, [&] {
      Json request = request_;
      request["offset"] = offset;
      request["size"] = to.size();
      return children_->take()->ask([&](PythonChild& child) {
        child.send(request);
        const Json answer = child.answer();
        const auto bytes =
            static_cast<std::size_t>(answer.find("bytes")->integer());
        PENSTOCK_ASSERT(bytes <= to.size(), "no more than was asked for");
        child.read(to.data(), bytes);
        return bytes;
      });
    });
  }

 private:
  const Children children_;
  const Json request_;
  const std::string path_;
};

class ChildStore final : public files::ObjectStore {
 public:
  ChildStore(Children children, std::string uri)
      : children_(std::move(children)), uri_(std::move(uri)) {}

  std::vector<files::StoredObject> list(
      const std::string& path) const override {
    return of_child_store(path, [&] {
      const Json answer = children_->take()->ask([&](PythonChild& child) {
        child.send(request_of("list", path));
        return child.answer();
      });
      std::vector<files::StoredObject> found;
      for (const Json& one : answer.find("files")->array()) {
        const Json::Array& parts = one.array();
        found.push_back({.path = parts[0].string(),
                         .bytes = parts[1].integer(),
                         .changed_ns = parts[2].integer()});
      }
      return found;
    });
  }

  std::unique_ptr<files::StoredFile> open(
      const files::StoredObject& file) const override {
    return std::make_unique<ChildStoredFile>(
        children_, request_of("stored", file.path), file.path);
  }

 private:
  /// A child connects by the URI, which has the options.
  Json request_of(const char* what, const std::string& path) const {
    Json request = request_for(what, path);
    request["uri"] = in_hex(uri_);
    return request;
  }

  const Children children_;
  const std::string uri_;
};

class ProgramChoice final : public ArrowChoice {
 public:
  std::string pyarrow() override {
    const char* named = std::getenv("PENSTOCK_ARROW_DIR");
    return named == nullptr || *named == '\0' ? ""
                                              : std::string(named) + "/pyarrow";
  }
  bool scanner_first() override {
    const char* way = std::getenv("PENSTOCK_ARROW_WAY");
    return way != nullptr && std::string(way) == "scanner";
  }
  std::shared_ptr<ArrowScanner> scanner() override {
    return std::make_shared<ChildScanner>(started());
  }
  std::shared_ptr<const files::ObjectStore> connect(
      const std::string& uri) override {
    return std::make_shared<ChildStore>(started(), uri);
  }

 private:
  /// With a first child, so that one that is missing is told now.
  Children started() {
    children()->take();
    return children();
  }
};

}  // namespace

std::shared_ptr<ArrowChoice> program_choice() {
  return std::make_shared<ProgramChoice>();
}

std::string program_reads_by() {
  return children()->take()->ask([](PythonChild& child) {
    return "pyarrow " + child.pyarrow() + " of " + child.python();
  });
}

}  // namespace penstock::arrow_files
