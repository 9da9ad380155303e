#include "python/engine/messages.h"

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/base.h"
#include "penstock/base/sync.h"
#include "python/engine/file_text.h"
#include "python/engine/function.h"
#include "python/engine/gil.h"

namespace penstock::python {
namespace {

namespace nb = nanobind;

struct Kept {
  Mutex mutex;
  std::vector<std::pair<LogLevel, std::string>> messages
      PENSTOCK_GUARDED_BY(mutex);
  // A hint that saves the lock: a thread that misses it sees it the next time.
  std::atomic<bool> any{false};
};

// Leaked on purpose: threads that end after Python may still write.
Kept& kept() {
  static auto* only = new Kept;
  return *only;
}

/// Raises what `error` is in Python.
void raise(const Error& error) {
  nb::module_ errors = nb::module_::import_("penstock.errors");
  const ErrorParts& parts = error.parts();
  nb::object made =
      errors.attr("made")(message_text(name_of(error.kind())),
                          message_text(error.what()), message_text(parts.code),
                          message_text(parts.what), message_text(parts.where),
                          message_text(parts.why), message_text(parts.next));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
}

/// Raises what a function raised, which the loader keeps.
void raise_again(nb::handle kept) {
  nb::object made = nb::module_::import_("penstock.errors").attr("again")(kept);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
}

Error no_memory() {
  return Error(
      ErrorKind::out_of_memory,
      {.code = "memory.host",
       .what = "the host is out of memory",
       .where = "this process",
       .why = "a memory allocation failed",
       .next = "set cache to \"none\", or give the process more memory"});
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      if (nb::object kept = raised_in_python(error); kept.is_valid())
        raise_again(kept);
      else
        raise(error);
    } catch (const std::bad_alloc&) {
      raise(no_memory());
    }
  } catch (nb::python_error& error) {
    error.restore();  // penstock.errors itself failed
  }
}

}  // namespace

void keep_messages() {
  set_log_writer([](LogLevel level, std::string_view text) {
    Kept& to = kept();
    Lock lock(to.mutex);
    to.messages.emplace_back(level, text);
    to.any = true;
  });
}

void write_messages() {
  Kept& from = kept();
  if (!from.any.exchange(false)) return;
  std::vector<std::pair<LogLevel, std::string>> messages;
  {
    Lock lock(from.mutex);
    messages.swap(from.messages);
  }
  PythonCallScope call;
  nb::object write = nb::module_::import_("penstock.messages").attr("write");
  auto next = messages.begin();
  try {
    while (next != messages.end()) {
      auto [level, text] = *next++;
      write(static_cast<int>(level), message_text(text));
    }
  } catch (const nb::python_error&) {  // a handler raised: the rest is kept
    Lock lock(from.mutex);
    from.messages.insert(from.messages.begin(), next, messages.end());
    from.any = !from.messages.empty();
    throw;
  }
}

void translate_errors() { nb::register_exception_translator(translate); }

}  // namespace penstock::python
