#include "python/engine/arrow_scanner.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "penstock/base/file.h"
#include "penstock/sources/sources.h"
#include "python/engine/function.h"
#include "python/engine/gil.h"
#include "python/engine/table.h"

namespace penstock::python {
namespace {

/// An object of Python that any thread may let go.
using Held = std::shared_ptr<PyObject>;

Held held(nb::object object) {
  return {object.release().ptr(), [](PyObject* at) {
            if (!Py_IsInitialized()) return;
            GilAcquire lock;
            Py_DECREF(at);
          }};
}

/// Throws what penstock._rows.arrow_files raised of a file, where it is that.
void throw_failure(const nb::python_error& raised) {
  nb::handle value = raised.value();
  if (!nb::hasattr(value, "says")) return;
  auto text = [&](const char* name) {
    return nb::cast<std::string>(value.attr(name));
  };
  throw ScanFailure{.says = text("says"),
                    .where = text("where"),
                    .next = text("next"),
                    .no_memory = nb::cast<bool>(value.attr("no_memory")),
                    .unsupported = nb::cast<bool>(value.attr("unsupported")),
                    .of_store = nb::cast<bool>(value.attr("of_store"))};
}

/// Calls `work` with the module, and with Python's lock.
template <class Work>
auto with_module(Function& module, Work work) {
  decltype(work(nb::object())) answer{};
  module.call([&](const nb::object& at) {
    try {
      answer = work(at);
    } catch (const nb::python_error& raised) {
      throw_failure(raised);
      throw;
    }
  });
  return answer;
}

std::shared_ptr<Function> module_function(
    const char* name = "penstock._rows.arrow_files") {
  GilAcquire lock;
  return std::make_shared<Function>(nb::module_::import_(name));
}

nb::bytes path_bytes(const std::string& path) {
  return nb::bytes(path.data(), path.size());
}

std::shared_ptr<const ArrowTable> rows_in(nb::handle table) {
  return table_of(nb::cast<nb::capsule>(table.attr("__arrow_c_stream__")()));
}

class PythonScan final : public ChunkScan {
 public:
  PythonScan(std::shared_ptr<Function> module, Held scan)
      : module_(std::move(module)), scan_(std::move(scan)) {}

  void begin(std::int64_t chunk) override {
    with_module(*module_, [&](const nb::object&) {
      nb::handle(scan_.get()).attr("begin")(chunk);
      return true;
    });
  }
  std::shared_ptr<const ArrowTable> next() override {
    return with_module(*module_, [&](const nb::object&) {
      nb::object rows = nb::handle(scan_.get()).attr("next")();
      return rows.is_none() ? nullptr : rows_in(rows);
    });
  }

 private:
  const std::shared_ptr<Function> module_;
  const Held scan_;
};

class PythonFile final : public ScannedFile {
 public:
  PythonFile(std::shared_ptr<Function> module, const nb::object& file)
      : module_(std::move(module)), file_(held(file)) {
    this->empty = rows_in(file.attr("empty"));
    this->declared = nb::cast<std::vector<std::string>>(file.attr("declared"));
    this->meaning = nb::cast<std::vector<std::string>>(file.attr("meaning"));
    this->classes =
        nb::cast<std::vector<std::vector<std::string>>>(file.attr("classes"));
    this->chunk_ends =
        nb::cast<std::vector<std::int64_t>>(file.attr("chunk_ends"));
  }

  std::unique_ptr<ChunkScan> scan(
      const std::vector<std::size_t>& columns) const override {
    return with_module(*module_, [&](const nb::object&) {
      return std::make_unique<PythonScan>(
          module_, held(nb::handle(file_.get()).attr("scan")(columns)));
    });
  }

 private:
  const std::shared_ptr<Function> module_;
  const Held file_;
};

class PythonScanner final : public ArrowScanner {
 public:
  explicit PythonScanner(std::shared_ptr<Function> module)
      : module_(std::move(module)) {}

  std::shared_ptr<const ScannedFile> open(const std::string& kind,
                                          const std::string& path) override {
    return with_module(*module_, [&](const nb::object& module) {
      return std::make_shared<PythonFile>(
          module_, module.attr("open_file")(kind, path_bytes(path)));
    });
  }

 private:
  const std::shared_ptr<Function> module_;
};

/// Does `work` of a store, with the module, and says what that refuses.
template <class Work>
auto of_store(Function& module, const std::string& path, Work work) {
  try {
    return with_module(module, work);
  } catch (const ScanFailure& failure) {
    files::refuse_stored(path, failure.says);
  }
}

class PythonStoredFile final : public files::StoredFile {
 public:
  PythonStoredFile(std::shared_ptr<Function> module, Held file,
                   std::string path)
      : module_(std::move(module)),
        file_(std::move(file)),
        path_(std::move(path)) {}

  std::size_t read(std::int64_t offset, std::span<char> to) const override {
    return of_store(*module_, path_, [&](const nb::object&) {
      const auto got = nb::cast<nb::bytes>(
          nb::handle(file_.get()).attr("read")(offset, to.size()));
      const std::size_t bytes = std::min(got.size(), to.size());
      std::memcpy(to.data(), got.c_str(), bytes);
      return bytes;
    });
  }

 private:
  const std::shared_ptr<Function> module_;
  const Held file_;
  const std::string path_;
};

class PythonStore final : public files::ObjectStore {
 public:
  PythonStore(std::shared_ptr<Function> module, const std::string& uri)
      : module_(std::move(module)),
        store_(of_store(*module_, files::path_of_stored(uri),
                        [&](const nb::object& at) {
                          return held(at.attr("Store")(path_bytes(uri)));
                        })) {}

  std::vector<files::StoredObject> list(
      const std::string& path) const override {
    return of_store(*module_, path, [&](const nb::object&) {
      std::vector<files::StoredObject> found;
      for (nb::handle one :
           nb::handle(store_.get()).attr("list")(path_bytes(path))) {
        const auto [name, bytes, changed_ns] =
            nb::cast<std::tuple<nb::bytes, std::int64_t, std::int64_t>>(one);
        found.push_back({.path = std::string(name.c_str(), name.size()),
                         .bytes = bytes,
                         .changed_ns = changed_ns});
      }
      return found;
    });
  }

  std::unique_ptr<files::StoredFile> open(
      const files::StoredObject& file) const override {
    return of_store(*module_, file.path, [&](const nb::object&) {
      return std::make_unique<PythonStoredFile>(
          module_,
          held(nb::handle(store_.get()).attr("open")(path_bytes(file.path))),
          file.path);
    });
  }

 private:
  const std::shared_ptr<Function> module_;
  const Held store_;
};

void check_pyarrow() {
  with_module(*module_function(), [&](const nb::object& at) {
    at.attr("check_pyarrow")();
    return true;
  });
}

class PyarrowChoice final : public ArrowChoice {
 public:
  std::string pyarrow() override {
    return with_module(*module_function(), [&](const nb::object& module) {
      return nb::cast<std::string>(module.attr("libraries")());
    });
  }
  bool scanner_first() override {
    return with_module(*module_function(), [&](const nb::object& module) {
      return nb::cast<bool>(module.attr("scanner_first")());
    });
  }
  std::shared_ptr<ArrowScanner> scanner() override {
    check_pyarrow();
    return std::make_shared<PythonScanner>(module_function());
  }
  std::shared_ptr<const files::ObjectStore> connect(
      const std::string& uri) override {
    check_pyarrow();
    return std::make_shared<PythonStore>(
        module_function("penstock._rows.object_store"), uri);
  }
};

}  // namespace

namespace {

void bind_map_file(nb::module_& module) {
  module.def(
      "map_file",
      [](const nb::bytes& path) {
        auto mapping = std::make_unique<std::unique_ptr<FileMapping>>(
            map_data_file(std::string(path.c_str(), path.size())));
        const std::span<const std::byte> bytes = (*mapping)->bytes();
        const nb::capsule owner(mapping.release(), [](void* held) noexcept {
          delete static_cast<std::unique_ptr<FileMapping>*>(held);
        });
        return nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<1>>(
            bytes.data(), {bytes.size()}, owner);
      },
      nb::arg("path"),
      "The bytes of a file, read when they are looked at. Those that cannot be "
      "read any more, since the file was cut off, are zeros.");
}

}  // namespace

void let_pyarrow_read(nb::module_& module) {
  bind_map_file(module);
  choose_arrow(std::make_shared<PyarrowChoice>());
}

}  // namespace penstock::python
