#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "python/engine/engine.h"
#include "python/engine/rows.h"

namespace penstock::python {

/// An iteration over an engine's batches, of one epoch or with no end.
///
/// Once torch has been imported, a watch stands around the wait for each: the
/// Python object of timing.py, whose methods asks(), got(epoch) and rests() are
/// called. What they raise ends the call, and loses no batch
/// but one after which another thread has taken the next.
class Batches {
 public:
  /// The rest of the epoch that is next. `format` turns each batch into what
  /// the loop gets; None: the batch itself.
  static Batches epoch(nb::handle_t<Engine> engine, nb::object watch,
                       nb::object format);
  /// So many, or without end, from where the last iteration stopped.
  static Batches here(nb::handle_t<Engine> engine,
                      std::optional<std::int64_t> steps, nb::object watch,
                      nb::object format);

  /// The same, each written into these arrays, by the names of a batch's
  /// tensors; next() gives its rows. `steps` none: the rest of the epoch.
  static Batches into(nb::handle_t<Engine> engine,
                      nb::typed<nb::dict, nb::str, nb::any> tensors,
                      std::optional<std::int64_t> steps, nb::object watch);

  /// A batch, or the rows of one that was written into arrays. Throws Error,
  /// nb::stop_iteration after the last one, or what a signal's
  /// handler raised.
  nb::object next();
  /// The verdict on the loop of its loader: what `watch` says.
  nb::object explain() const { return watch_.attr("explain")(); }
  /// How many are left; none: without end.
  std::optional<std::int64_t> left() const;

  int visit(visitproc visit, void* arg) const;
  void clear();

 private:
  Batches(nb::handle engine, nb::object watch, nb::object format,
          std::int64_t iteration, std::int64_t left)
      : engine_(nb::borrow(engine)),
        watch_(std::move(watch)),
        format_(std::move(format)),
        iteration_(iteration),
        left_(left) {}
  /// What the loop gets, and where it is from.
  struct Taken {
    nb::object given;
    Position at;
    std::int64_t rows;
  };
  Taken take(Engine& engine);
  template <class... Values>
  void call_watch(const char* what, Values... values);

  nb::object engine_;  ///< null once Python's garbage collector cleared it
  nb::object watch_;
  nb::object format_;
  std::int64_t iteration_;
  std::int64_t left_;  ///< -1: no end
  bool watched_ = false;
  std::vector<NamedArray> into_;  ///< empty: batches of their own memory
  std::vector<TensorView> views_;
};

void bind_batches(nb::module_& module);

}  // namespace penstock::python
