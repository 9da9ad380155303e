#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "penstock/trainer/backward_queue.h"
#include "penstock/trainer/drawn.h"
#include "penstock/trainer/gradients.h"
#include "penstock/trainer/graphs/device_graph.h"
#include "penstock/trainer/graphs/fixed_rows.h"
#include "penstock/trainer/mean_loss.h"

namespace penstock {

/// How the loss of a pass goes backward.
struct PassWeight {
  std::int64_t share = 1;  ///< steps that move the weights together
  /// Of a pass over a part of a batch: the rows of all of it. Else 0.
  std::int64_t batch_rows = 0;
  bool operator==(const PassWeight&) const = default;
};

/// Takes the passes of a run, forward and backward over some rows, as graphs:
/// each shape of rows is passed by itself a few times, then recorded once, and
/// replayed from there on, with the same numbers bit for bit. A limited number
/// of shapes has graphs, which stay in memory.
///
/// One thread. What it refers to must outlive it.
class StepGraphs {
 public:
  static constexpr std::size_t kMostGraphs = 8;
  /// A pass that is recorded must find all that is made at its first use.
  static constexpr int kWarmUps = 3;

  /// Leaves gradients in the parameters. What it queues depends on nothing but
  /// its arguments, the weight and the device's memory; it is kept.
  using Pass =
      std::function<MeanLoss(const BatchRows& rows, const DrawnFor& drawn_for)>;

  /// `make` null: there are no graphs.
  StepGraphs(MakeGraph make, Device& device, at::Device torch,
             Gradients& gradients, const BackwardQueue& queue);

  bool on() const { return make_ != nullptr; }
  /// Does what `pass` does. With `keep` its results stay unchanged; without,
  /// they and the gradients are valid until the next pass. A graph that cannot
  /// be recorded or replayed ends them all, and `pass` is called instead.
  MeanLoss take(const BatchRows& rows, const DrawnFor& drawn_for,
                const PassWeight& weight, bool keep, const Pass& pass);

  /// No graphs from here on. The device must be done with all replays.
  void end(const std::string& why);
  /// The same with a warning, once `stream`, behind all replays, is done.
  void give_up(const std::string& why, Stream& stream);
  /// Why they have ended; empty while they have not.
  const std::string& ended() const { return ended_; }

  std::int64_t graphs() const { return std::ssize(graphs_); }
  /// That the graphs hold by themselves.
  std::int64_t bytes() const;

 private:
  struct Key {
    RowsShape rows;
    PassWeight weight;
    bool operator==(const Key&) const = default;
  };
  struct Met {
    Key key;
    int passes = 0;
  };
  struct Recorded {
    Recorded(Key of, const BatchRows& first)
        : key(std::move(of)), inputs(first) {}
    Key key;
    FixedRows inputs;
    FixedDraws draws;
    std::unique_ptr<DeviceGraph> graph;
    std::vector<at::Tensor> results;  // the loss, what it counts, gradients
  };

  bool is_warm(const Key& key);
  Recorded* find(const Key& key) const;
  Recorded& record(Key key, const BatchRows& rows, const Pass& pass);
  std::vector<at::Tensor> results_of(Recorded& of, const Pass& pass);
  MeanLoss replayed(Recorded& of, const BatchRows& rows,
                    const DrawnFor& drawn_for, bool keep);

  MakeGraph make_;
  const at::Device torch_;
  Gradients& gradients_;
  const BackwardQueue& queue_;
  const std::unique_ptr<Stream> stream_;  // of recordings alone
  Staging unused_;                        // by a pass whose draws are fixed
  std::vector<Met> met_;                  // shapes without graphs, latest last
  std::vector<std::unique_ptr<Recorded>> graphs_;
  bool told_of_many_ = false;
  std::string ended_;
};

}  // namespace penstock
