#include "python/engine/own_stepper.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "python/engine/function.h"
#include "python/engine/gil.h"
#include "python/engine/messages.h"

namespace penstock::python {
namespace {

using StateBytes =
    nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Keeps an object of Python until the last error that holds it is gone.
std::shared_ptr<PyObject> kept(nb::handle raised) {
  return {raised.inc_ref().ptr(), [](PyObject* held) {
            if (!Py_IsInitialized()) return;
            GilAcquire lock;
            Py_DECREF(held);
          }};
}

struct SavedTensor {
  std::string name;
  Dtype dtype = Dtype::float32;
  Shape shape;
  StateBytes bytes;
};

/// (name, dtype, shape, bytes), as Python has them.
SavedTensor saved_tensor(nb::handle entry) {
  SavedTensor tensor{.name = nb::cast<std::string>(entry[0]),
                     .shape = nb::cast<Shape>(entry[2]),
                     .bytes = nb::cast<StateBytes>(entry[3])};
  const auto dtype = nb::cast<std::string>(entry[1]);
  PENSTOCK_ASSERT(dtype_from(dtype, tensor.dtype), "Python checks the dtypes");
  PENSTOCK_ASSERT(tensor.bytes.size() ==
                      static_cast<std::size_t>(elements_of(tensor.shape)) *
                          size_of(tensor.dtype),
                  "Python gives all bytes of a tensor");
  return tensor;
}

std::vector<SwitchInForce> in_force_of(const nb::object& stepper) {
  const Json list = Json::parse(
      nb::cast<std::string>(stepper.attr("in_force")()), "what is in force");
  std::vector<SwitchInForce> switches;
  for (const Json& one : list.array())
    switches.push_back({.name = one.find("name")->string(),
                        .asked = *one.find("asked"),
                        .got = *one.find("got"),
                        .why = one.find("why")->string()});
  return switches;
}

}  // namespace

Error error_in_python(const nb::python_error& raised) {
  nb::handle value = raised.value();
  auto text = [&](const char* part) {
    nb::object found = nb::getattr(value, part, nb::none());
    return nb::isinstance<nb::str>(found) ? nb::cast<std::string>(found)
                                          : std::string();
  };
  const std::string kind = text("kind");
  ErrorParts parts{.code = text("code"),
                   .what = text("what"),
                   .where = text("where"),
                   .why = text("why"),
                   .next = text("next")};
  for (ErrorKind each :
       {ErrorKind::request, ErrorKind::source, ErrorKind::transform,
        ErrorKind::device, ErrorKind::out_of_memory, ErrorKind::internal})
    if (kind == name_of(each))
      return Error(each, std::move(parts)).caused_by(kept(value));
  parts.code = "python.raised";
  parts.what = "a call to Python failed";
  parts.why =
      nb::cast<std::string>(nb::str(nb::getattr(raised.type(), "__name__")));
  return Error(ErrorKind::transform, std::move(parts)).caused_by(kept(value));
}

OwnStepper::OwnStepper(std::shared_ptr<Session> session, nb::object stepper)
    : Stepper({.has_model = true, .in_force = in_force_of(stepper)}),
      session_(std::move(session)),
      stepper_(std::move(stepper)),
      step_memory_(nb::getattr(stepper_, "memory", nb::none())) {
  if (step_memory_.is_none()) return;
  memory_ = this;
  micro_ = nb::cast<std::int64_t>(step_memory_.attr("micro_batch"));
}

OwnStepper::~OwnStepper() {
  GilAcquire lock;
  step_memory_.reset();
  stepper_.reset();
}

template <class Work>
auto OwnStepper::calling(Work work) {
  return in_python([&] {
    if (step_memory_.is_none()) return work();
    step_memory_.attr("micro_batch") = micro_;
    auto result = work();
    micro_ = nb::cast<std::int64_t>(step_memory_.attr("micro_batch"));
    for (nb::handle event : nb::object(step_memory_.attr("take_events")()))
      add({.step = nb::cast<std::int64_t>(event[0]),
           .from = nb::cast<std::int64_t>(event[1]),
           .to = nb::cast<std::int64_t>(event[2]),
           .action = oom_action_named(nb::cast<std::string>(event[3])),
           .exact = nb::cast<bool>(event[4])});
    return result;
  });
}

namespace {

/// (parameters, gradients, optimizer, activations), in bytes.
MemoryByOwner by_owner(nb::handle four) {
  return {.parameters = nb::cast<std::int64_t>(four[0]),
          .gradients = nb::cast<std::int64_t>(four[1]),
          .optimizer = nb::cast<std::int64_t>(four[2]),
          .activations = nb::cast<std::int64_t>(four[3])};
}

}  // namespace

MemoryByOwner OwnStepper::memory_of(const char* method) const {
  return in_python(
      [&] { return by_owner(nb::object(step_memory_.attr(method)())); });
}

MemoryByOwner OwnStepper::try_step(std::int64_t rows) {
  return calling([&] {
    return by_owner(nb::object(step_memory_.attr("try_step")(rows)));
  });
}

bool OwnStepper::give_way(std::int64_t step, std::int64_t rows) {
  return calling([&] {
    return nb::cast<bool>(step_memory_.attr("give_way")(step, rows));
  });
}

std::optional<std::int64_t> OwnStepper::row_alone() const {
  const auto row = in_python(
      [&] { return nb::cast<std::int64_t>(step_memory_.attr("row_alone")()); });
  return row < 0 ? std::nullopt : std::optional(row);
}

NamedBatch OwnStepper::named(const std::shared_ptr<Batch>& batch) const {
  return NamedBatch(std::make_shared<BatchHandle>(session_, batch));
}

void OwnStepper::step(const std::shared_ptr<Batch>& batch, Stream&,
                      std::int64_t number) {
  const auto summed = calling([&] {
    return nb::cast<std::uint64_t>(stepper_.attr("step")(named(batch), number));
  });
  if (ranks_ == nullptr) return;
  ranks_->count_sum(summed);
  ranks_->vote({});
}

// Over ranks torch's own engines add inside of backward(), where there is no
// way back: a step that runs out of memory ends the run.
void OwnStepper::join(RankGroup* ranks) {
  ranks_ = ranks;
  memory_ = ranks == nullptr && !step_memory_.is_none() ? this : nullptr;
  in_python([&] { stepper_.attr("join")(ranks != nullptr); });
}

std::vector<double> OwnStepper::losses(bool wait) {
  return in_python([&] {
    return nb::cast<std::vector<double>>(stepper_.attr("losses")(wait));
  });
}

void OwnStepper::validate(const std::shared_ptr<Batch>& batch, Stream&) {
  calling([&] {
    stepper_.attr("validate")(named(batch));
    return true;
  });
}

Validated OwnStepper::validated() {
  const std::string text = in_python(
      [&] { return nb::cast<std::string>(stepper_.attr("validated")()); });
  Validated found;
  const Json all = Json::parse(text, "what was validated");
  for (const auto& [name, value] : all.object())
    (name == "details" ? found.details : found.metrics[name]) = value;
  return found;
}

ModelState OwnStepper::state_in(std::vector<std::byte> memory) {
  ModelState state;
  state.memory = std::move(memory);
  std::string text = in_python([&] {
    nb::object saved = stepper_.attr("save")();
    std::vector<SavedTensor> tensors;
    std::size_t bytes = 0;
    for (nb::handle entry : nb::object(saved[0])) {
      tensors.push_back(saved_tensor(entry));
      bytes += tensors.back().bytes.size();
    }
    state.memory.resize(bytes);
    std::byte* to = state.memory.data();
    for (SavedTensor& one : tensors) {
      if (one.bytes.size() > 0)
        std::memcpy(to, one.bytes.data(), one.bytes.size());
      state.tensors.push_back(
          {std::move(one.name),
           {.data = to, .dtype = one.dtype, .shape = std::move(one.shape)}});
      to += one.bytes.size();
    }
    return nb::cast<std::string>(saved[1]);
  });
  state.json = Json::parse(text, "the model's state");
  return state;
}

void OwnStepper::restore(const ModelState& state) {
  calling([&] {
    stepper_.attr("restore")(saved_entries(state), state.json.dump());
    return true;
  });
}

nb::list saved_entries(const ModelState& state) {
  nb::list tensors;
  for (const NamedTensor& tensor : state.tensors) {
    TensorView bytes{.data = tensor.view.data,
                     .dtype = Dtype::uint8,
                     .shape = {static_cast<std::int64_t>(tensor.view.bytes())}};
    tensors.append(
        nb::make_tuple(tensor.name, std::string(name_of(tensor.view.dtype)),
                       tensor.view.shape, numpy_array(bytes, nullptr)));
  }
  return tensors;
}

namespace {

Json facts_of_fields(const std::vector<penstock::Field>& of,
                     const FittedFields* rows) {
  Json fields{Json::Object{}};
  for (const penstock::Field& field : of) {
    Json& facts = fields[field.name];
    facts["recipe"] = field.kind->facts().recipe;
    facts["statistics"] =
        rows == nullptr ? Json() : rows->statistics_of(field.name);
    facts["tensors"] = Json::Array{};
    for (const Output& output : field.kind->facts().outputs)
      facts["tensors"].push_back(output.name);
  }
  return fields;
}

Json facts_of_tensors(const std::vector<BatchTensor>& of) {
  Json tensors{Json::Object{}};
  for (const BatchTensor& tensor : of) {
    Json& facts = tensors[tensor.name];
    facts["dtype"] = std::string(name_of(tensor.dtype));
    facts["shape"] = Json::Array{};
    for (std::int64_t extent : tensor.row_shape)
      facts["shape"].push_back(extent);
  }
  return tensors;
}

/// The tensors of rows that are as long as rows can be.
Json made_up(const FittedFields& fields) {
  Json tensors = Json::Array{};
  for (const MadeUpTensor& tensor : made_up_tensors(fields)) {
    Json entry;
    entry["name"] = tensor.name;
    entry["dtype"] = std::string(name_of(tensor.dtype));
    entry["shape"] = Json::Array{};
    for (std::int64_t extent : tensor.row_shape)
      entry["shape"].push_back(extent);
    entry["offsets"] = tensor.offsets;
    entry["lengths"] = tensor.lengths;
    tensors.push_back(std::move(entry));
  }
  return tensors;
}

/// What does not depend on the rows.
Json facts_of_model(const Job& job, const Device& device, std::int64_t steps) {
  Json facts;
  facts["device"] = device.memory_kind() == MemoryKind::cuda
                        ? "cuda:" + std::to_string(device.number())
                        : std::string("cpu");
  facts["memory_share"] = Json();
  if (device.memory_kind() == MemoryKind::cuda &&
      std::isfinite(job.device.memory_gib))
    facts["memory_share"] =
        std::min(1.0, job.device.memory_gib * 0x1p30 /
                          static_cast<double>(device.memory().total));
  facts["model"] = model_section(job.model);
  Learning learning = job.model.learning;
  learning.threads = threads_of(job.model);
  learning.warmup_steps = warmup_of(learning, steps);
  facts["learning"] = learning_settings().shown(learning);
  return facts;
}

}  // namespace

Json facts_of(const Job& job, Session& session, std::int64_t steps) {
  Json facts = facts_of_model(job, session.device(), steps);
  const auto fitted = session.opened()->facts().fitted;
  facts["steps"] = steps;
  facts["steps_per_epoch"] = session.steps_per_epoch();
  facts["rows"]["train"] = session.rows().rows_on(Side::train);
  facts["rows"]["val"] = session.rows().rows_on(Side::val);
  facts["rows"]["test"] = session.rows().rows_on(Side::test);
  facts["fields"] = facts_of_fields(job.fields, fitted.get());
  facts["tensors"] = facts_of_tensors(session.tensors());
  facts["made_up"] = fitted == nullptr ? Json() : made_up(*fitted);
  return facts;
}

Json facts_of_predictions(const Job& job, const FittedFields& fields,
                          const Device& device) {
  Json facts = facts_of_model(job, device, 1);
  DatasetFacts rows{.outputs = outputs_of(fields.fields)};
  facts["steps"] = 1;
  facts["fields"] = facts_of_fields(fields.fields, &fields);
  facts["tensors"] =
      facts_of_tensors(batch_tensors(rows, Side::val, /*weights=*/false));
  return facts;
}

}  // namespace penstock::python
