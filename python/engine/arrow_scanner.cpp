#include "python/engine/arrow_scanner.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>

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

/// Throws what penstock.arrow_files raised of a file, where it is that.
void throw_failure(const nb::python_error& raised) {
  nb::handle value = raised.value();
  if (!nb::hasattr(value, "says")) return;
  auto text = [&](const char* name) {
    return nb::cast<std::string>(value.attr(name));
  };
  throw ScanFailure{.says = text("says"),
                    .where = text("where"),
                    .next = text("next"),
                    .no_memory = nb::cast<bool>(value.attr("no_memory"))};
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

std::shared_ptr<Function> module_function() {
  GilAcquire lock;
  return std::make_shared<Function>(
      nb::module_::import_("penstock.arrow_files"));
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
          module_,
          module.attr("open_file")(kind, nb::bytes(path.data(), path.size())));
    });
  }

 private:
  const std::shared_ptr<Function> module_;
};

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
    auto module = module_function();
    with_module(*module, [&](const nb::object& at) {
      at.attr("check_pyarrow")();
      return true;
    });
    return std::make_shared<PythonScanner>(module);
  }
};

}  // namespace

void let_pyarrow_read() { choose_arrow(std::make_shared<PyarrowChoice>()); }

}  // namespace penstock::python
