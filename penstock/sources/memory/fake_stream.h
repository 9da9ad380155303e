#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "penstock/sources/memory/arrow_data.h"

namespace penstock {

/// An array of Arrow's C data interface, made by hand for tests. Its buffers
/// are its own, so that a sanitizer sees what is read beyond them.
struct FakeArray {
  std::string format, name;
  std::int64_t length = 0, offset = 0, nulls = 0;
  std::vector<std::vector<std::byte>> buffers = {};
  std::vector<FakeArray> children = {};
  std::vector<FakeArray> dictionary = {};  ///< one, or none

  template <class Number>
  static std::vector<std::byte> of(const std::vector<Number>& numbers) {
    std::vector<std::byte> bytes(numbers.size() * sizeof(Number));
    if (!numbers.empty())
      std::memcpy(bytes.data(), numbers.data(), bytes.size());
    return bytes;
  }
  static std::vector<std::byte> of(const std::string& text) {
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    return {bytes, bytes + text.size()};
  }
};

/// A stream of record batches that counts what is not released.
class FakeStream {
 public:
  /// `batches[b]` are the columns of a record batch; all have one schema.
  explicit FakeStream(std::vector<std::vector<FakeArray>> batches,
                      std::string failure = {})
      : batches_(std::move(batches)), failure_(std::move(failure)) {}

  /// At most one at a time. It borrows from this.
  ArrowArrayStream stream() {
    at_ = 0;
    ++open_;
    return {.get_schema = get_schema,
            .get_next = get_next,
            .get_last_error = last_error,
            .release =
                [](ArrowArrayStream* stream) {
                  --self(stream).open_;
                  stream->release = nullptr;
                },
            .private_data = this};
  }
  /// Schemas, arrays and streams that nobody has released.
  int open() const { return open_; }

 private:
  struct Schema {
    ArrowSchema made = {};
    std::vector<std::unique_ptr<Schema>> parts;
    std::vector<ArrowSchema*> children;
    int* open = nullptr;
  };
  struct Array {
    ArrowArray made = {};
    std::vector<std::unique_ptr<Array>> parts;
    std::vector<ArrowArray*> children;
    std::vector<const void*> buffers;
    int* open = nullptr;
  };

  static FakeStream& self(ArrowArrayStream* stream) {
    return *static_cast<FakeStream*>(stream->private_data);
  }
  FakeArray batch(std::size_t at) const {
    FakeArray all{.format = "+s", .name = ""};
    all.buffers.resize(1);
    all.children = batches_[at];
    all.length = all.children.empty() ? 0 : all.children[0].length;
    return all;
  }
  static std::unique_ptr<Schema> schema_of(const FakeArray& array) {
    auto schema = std::make_unique<Schema>();
    schema->made.format = array.format.c_str();
    schema->made.name = array.name.c_str();
    schema->made.flags = 2;
    for (const FakeArray& child : array.children) {
      schema->parts.push_back(schema_of(child));
      schema->children.push_back(&schema->parts.back()->made);
    }
    schema->made.n_children = static_cast<int64_t>(schema->children.size());
    schema->made.children = schema->children.data();
    if (!array.dictionary.empty()) {
      schema->parts.push_back(schema_of(array.dictionary[0]));
      schema->made.dictionary = &schema->parts.back()->made;
    }
    return schema;
  }
  static std::unique_ptr<Array> array_of(const FakeArray& array) {
    auto made = std::make_unique<Array>();
    made->made.length = array.length;
    made->made.offset = array.offset;
    made->made.null_count = array.nulls;
    for (const auto& buffer : array.buffers)
      made->buffers.push_back(buffer.empty() ? nullptr : buffer.data());
    made->made.n_buffers = static_cast<int64_t>(made->buffers.size());
    made->made.buffers = made->buffers.data();
    for (const FakeArray& child : array.children) {
      made->parts.push_back(array_of(child));
      made->children.push_back(&made->parts.back()->made);
    }
    made->made.n_children = static_cast<int64_t>(made->children.size());
    made->made.children = made->children.data();
    if (!array.dictionary.empty()) {
      made->parts.push_back(array_of(array.dictionary[0]));
      made->made.dictionary = &made->parts.back()->made;
    }
    return made;
  }

  static int get_schema(ArrowArrayStream* stream, ArrowSchema* out) {
    FakeStream& s = self(stream);
    s.kept_ = s.batch(0);
    auto schema = schema_of(s.kept_);
    schema->open = &s.open_;
    *out = schema->made;
    out->private_data = schema.release();
    out->release = [](ArrowSchema* done) {
      std::unique_ptr<Schema> held(static_cast<Schema*>(done->private_data));
      --*held->open;
      done->release = nullptr;
    };
    ++s.open_;
    return 0;
  }
  static int get_next(ArrowArrayStream* stream, ArrowArray* out) {
    FakeStream& s = self(stream);
    if (s.at_ == s.batches_.size()) {
      if (!s.failure_.empty()) return 5;
      out->release = nullptr;
      return 0;
    }
    s.lent_.push_back(std::make_unique<FakeArray>(s.batch(s.at_++)));
    auto array = array_of(*s.lent_.back());
    array->open = &s.open_;
    *out = array->made;
    out->private_data = array.release();
    out->release = [](ArrowArray* done) {
      std::unique_ptr<Array> held(static_cast<Array*>(done->private_data));
      --*held->open;
      done->release = nullptr;
    };
    ++s.open_;
    return 0;
  }
  static const char* last_error(ArrowArrayStream* stream) {
    const std::string& text = self(stream).failure_;
    return text.empty() ? nullptr : text.c_str();
  }

  std::vector<std::vector<FakeArray>> batches_;
  std::string failure_;
  std::size_t at_ = 0;
  int open_ = 0;
  FakeArray kept_;
  std::vector<std::unique_ptr<FakeArray>> lent_;
};

}  // namespace penstock
