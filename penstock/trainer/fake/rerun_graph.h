#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "penstock/trainer/graphs/graph_maker.h"

namespace penstock {

/// A graph on the cpu, for tests: it calls what it has recorded again, and
/// writes the results where those of the recording are. As after a recording on
/// a GPU, these have no values before the first replay.
class RerunGraph final : public DeviceGraph {
 public:
  /// What all of them did since reset(), and what they shall do.
  struct Counts {
    int recorded = 0, replayed = 0, alive = 0;
    std::int64_t pool_bytes = 0;  ///< that each claims to hold
    int failing = 0;         ///< the recording that throws, from 1; 0: none
    int failing_replay = 0;  ///< the same of replays
    bool short_of_memory = false;  ///< that is what they throw
  };
  static Counts& counts() {
    static Counts all;
    return all;
  }

  RerunGraph() { ++counts().alive; }
  ~RerunGraph() override { --counts().alive; }
  RerunGraph(const RerunGraph&) = delete;
  RerunGraph& operator=(const RerunGraph&) = delete;

  std::vector<at::Tensor> record(const Work& work) override {
    work_ = work;
    results_ = work();
    ++counts().recorded;
    if (counts().recorded == counts().failing) fail();
    const at::NoGradGuard no_graph;
    for (const at::Tensor& result : results_)
      if (result.defined())
        result.fill_(std::numeric_limits<double>::quiet_NaN());
    return results_;
  }

  void replay() override {
    if (++counts().replayed == counts().failing_replay) fail();
    const std::vector<at::Tensor> again = work_();
    const at::NoGradGuard no_graph;
    for (std::size_t i = 0; i < again.size(); ++i)
      if (again[i].defined()) results_[i].copy_(again[i]);
  }

  std::int64_t pool_bytes() const override { return counts().pool_bytes; }

 private:
  static void fail() {
    TORCH_CHECK_WITH(OutOfMemoryError, !counts().short_of_memory,
                     "no memory for a graph");
    TORCH_CHECK(false, "operation not permitted when stream is capturing");
  }

  Work work_;
  std::vector<at::Tensor> results_;
};

/// While it lives, the cpu has graphs.
class GraphsOnCpu {
 public:
  GraphsOnCpu() {
    RerunGraph::counts() = {};
    make_graphs_on_cpu([]() -> std::unique_ptr<DeviceGraph> {
      return std::make_unique<RerunGraph>();
    });
  }
  ~GraphsOnCpu() { make_graphs_on_cpu(nullptr); }
  GraphsOnCpu(const GraphsOnCpu&) = delete;
  GraphsOnCpu& operator=(const GraphsOnCpu&) = delete;
};

}  // namespace penstock
