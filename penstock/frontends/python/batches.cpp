#include "penstock/frontends/python/batches.h"

#include "penstock/frontends/python/waiting.h"

namespace penstock::python {
namespace {

bool has_torch() {
  CallsPython call;
  nb::object modules = nb::module_::import_("sys").attr("modules");
  return nb::cast<nb::dict>(modules).contains("torch");
}

nb::object length_hint(const Batches& batches) {
  if (std::optional<std::int64_t> left = batches.left()) return nb::int_(*left);
  return nb::borrow(Py_NotImplemented);
}

}  // namespace

Batches Batches::epoch(std::shared_ptr<Engine> engine, nb::object watch) {
  std::int64_t iteration = engine->begin_epoch();
  std::int64_t left = engine->steps_left();
  return {std::move(engine), std::move(watch), iteration, left};
}

Batches Batches::here(std::shared_ptr<Engine> engine,
                      std::optional<std::int64_t> steps, nb::object watch) {
  std::int64_t iteration = engine->begin_here();
  return {std::move(engine), std::move(watch), iteration, steps.value_or(-1)};
}

template <class... Values>
void Batches::tell(const char* what, Values... values) {
  CallsPython call;
  watch_.attr(what)(values...);
}

NamedBatch Batches::next() {
  watched_ = watched_ || has_torch();
  if (left_ == 0) {
    if (watched_) tell("rests");
    engine_->rest(iteration_);
    throw nb::stop_iteration();
  }
  if (watched_) tell("asks");
  NamedBatch batch = engine_->next(iteration_);
  if (watched_) {
    try {
      tell("got", batch.held().batch().at().epoch);
    } catch (...) {
      engine_->put_back(batch);
      throw;
    }
  }
  if (left_ > 0) --left_;
  return batch;
}

std::optional<std::int64_t> Batches::left() const {
  if (left_ < 0) return std::nullopt;
  return left_;
}

void bind_batches(nb::module_& module) {
  nb::class_<Batches>(module, "Batches", "Batches, one after the other.")
      .def(
          "__iter__", [](nb::handle self) { return self; },
          nb::sig("def __iter__(self) -> Batches"))
      .def("__length_hint__", &length_hint,
           nb::sig("def __length_hint__(self) -> int"))
      .def("__next__", &Batches::next);
}

}  // namespace penstock::python
