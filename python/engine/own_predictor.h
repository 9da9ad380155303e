#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

#include "penstock/session/session.h"

namespace penstock::python {

namespace nb = nanobind;

/// Predictions that an object of Python makes
/// (penstock._training.predictor.Predictor has its methods). Made with Python's
/// lock; called without it.
class OwnPredictor final : public Predictor {
 public:
  explicit OwnPredictor(nb::object predictor);
  ~OwnPredictor() override;

  void use(const ModelState& weights) override;
  std::vector<double> predict(const std::shared_ptr<Batch>& batch,
                              const std::shared_ptr<Session>& session) override;
  Json measured(RankGroup* ranks) override;

 private:
  /// What this process has seen of rows since the last measured().
  std::string share();
  /// What all ranks have seen takes its place.
  void join(const std::vector<std::string>& shares);

  nb::object predictor_;
};

}  // namespace penstock::python
