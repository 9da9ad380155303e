#include "penstock/trainer/graphs/step_graphs.h"

#include <algorithm>
#include <utility>

#include "penstock/base/log.h"
#include "penstock/trainer/borrowed.h"
#include "penstock/trainer/torch_error.h"

// A graph reads and writes the same memory in each replay. So
// - what a pass takes from a batch, or draws, is copied into tensors that keep
//   their places before each replay, in the order of the stream;
// - what it leaves, a loss and gradients, is in tensors that the next replay
//   writes: it is used before, or copied;
// - parameters, buffers and the loss scale stay where they are for the whole
//   run. Averages exchanges the storage of parameters for a validation and
//   restores it before a step, so that a recording always sees the weights.
//
// Gradients are recorded as those of a pass that finds none, which is what the
// first pass of a step does. Those of a later one are added as backward() would
// have added them: each parameter has one sum, made before it is added. (A part
// that is computed again adds its own before: models with such parts refuse.)
namespace penstock {
namespace {

// As many shapes are remembered until they are met often enough.
constexpr std::size_t kMostMet = 64;

std::string reason_of_current() {
  try {
    throw_as_error("recording a step as a graph");
  } catch (const Error& error) {
    return error.parts().why;
  }
}

}  // namespace

StepGraphs::StepGraphs(MakeGraph make, Device& device, at::Device torch,
                       Gradients& gradients, const BackwardQueue& queue)
    : make_(make),
      torch_(torch),
      gradients_(gradients),
      queue_(queue),
      stream_(make == nullptr ? nullptr : device.make_stream()),
      unused_(device, 1) {}

MeanLoss StepGraphs::take(const BatchRows& rows, const DrawnFor& drawn_for,
                          const PassWeight& weight, bool keep,
                          const Pass& pass) {
  if (!on()) return pass(rows, drawn_for);
  Key key{shape_of(rows), weight};
  Recorded* found = find(key);
  if (found == nullptr && !is_warm(key)) return pass(rows, drawn_for);
  try {
    if (found == nullptr) found = &record(std::move(key), rows, pass);
    return replayed(*found, rows, drawn_for, keep);
  } catch (...) {
    give_up(reason_of_current(), drawn_for.stream);
    queue_.empty();
  }
  return pass(rows, drawn_for);
}

StepGraphs::Recorded* StepGraphs::find(const Key& key) const {
  const auto found = std::ranges::find_if(
      graphs_, [&](const auto& graph) { return graph->key == key; });
  return found == graphs_.end() ? nullptr : found->get();
}

/// Whether a shape without a graph shall have one now.
bool StepGraphs::is_warm(const Key& key) {
  if (graphs_.size() == kMostGraphs) {
    if (!std::exchange(told_of_many_, true))
      log(LogLevel::warning,
          "train.graphs: " + std::to_string(kMostGraphs) +
              " shapes of batches have graphs; the steps of other shapes take "
              "as long as without. Batches of one length avoid it, and "
              "micro-batches of more rows");
    return false;
  }
  auto met = std::ranges::find(met_, key, &Met::key);
  if (met == met_.end()) {
    if (met_.size() == kMostMet) met_.erase(met_.begin());
    met_.push_back({key});
    met = met_.end() - 1;
  }
  if (met->passes < kWarmUps) {
    ++met->passes;
    return false;
  }
  met_.erase(met);
  return true;
}

StepGraphs::Recorded& StepGraphs::record(Key key, const BatchRows& rows,
                                         const Pass& pass) {
  auto made = std::make_unique<Recorded>(std::move(key), rows);
  made->graph = make_();
  {
    const OnStream there(torch_, *stream_);
    made->results = made->graph->record(
        [this, of = made.get(), pass] { return results_of(*of, pass); });
  }
  graphs_.push_back(std::move(made));
  return *graphs_.back();
}

std::vector<at::Tensor> StepGraphs::results_of(Recorded& of, const Pass& pass) {
  const std::vector<at::Tensor> earlier = gradients_.set_aside(false);
  try {
    of.draws.begin();
    const MeanLoss loss =
        pass(of.inputs.rows(),
             {.staging = unused_, .stream = *stream_, .fixed = &of.draws});
    std::vector<at::Tensor> results = gradients_.all();
    results.insert(results.begin(), {loss.mean, loss.counted});
    gradients_.put_back(earlier);
    return results;
  } catch (...) {
    gradients_.put_back(earlier);
    throw;
  }
}

MeanLoss StepGraphs::replayed(Recorded& of, const BatchRows& rows,
                              const DrawnFor& drawn_for, bool keep) {
  of.inputs.copy(rows);
  of.draws.draw(drawn_for);
  of.graph->replay();
  auto result = [&](std::size_t at) {
    const at::Tensor& tensor = of.results[at];
    return keep && tensor.defined() ? tensor.clone() : tensor;
  };
  const MeanLoss loss{result(0), result(1)};
  gradients_.receive({of.results.begin() + 2, of.results.end()}, keep);
  return loss;
}

void StepGraphs::end(const std::string& why) {
  make_ = nullptr;
  ended_ = why;
  graphs_.clear();
  met_.clear();
}

void StepGraphs::give_up(const std::string& why, Stream& stream) {
  stream.synchronize();
  end(why);
  log(LogLevel::warning,
      "train.graphs is off from here on, with the same results: " + why);
}

std::int64_t StepGraphs::bytes() const {
  std::int64_t bytes = 0;
  for (const auto& one : graphs_) bytes += one->graph->pool_bytes();
  return bytes;
}

}  // namespace penstock
