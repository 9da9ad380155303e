#include "python/engine/own_predictor.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include "python/engine/own_stepper.h"

namespace penstock::python {
namespace {

using Numbers =
    nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

AnswerFacts answers_of(const nb::object& predictor) {
  const Json told = Json::parse(
      nb::cast<std::string>(predictor.attr("answers")()), "what is predicted");
  AnswerFacts facts{.of = told.find("of")->string() == "one_class"
                              ? AnswerFacts::Of::one_class
                              : AnswerFacts::Of::values};
  for (const Json& name : told.find("names")->array())
    facts.names.push_back(name);
  return facts;
}

}  // namespace

OwnPredictor::OwnPredictor(nb::object predictor)
    : Predictor(answers_of(predictor)), predictor_(std::move(predictor)) {}

OwnPredictor::~OwnPredictor() {
  GilAcquire lock;
  predictor_.reset();
}

void OwnPredictor::use(const ModelState& weights) {
  in_python([&] { predictor_.attr("use")(saved_entries(weights)); });
}

std::vector<double> OwnPredictor::predict(
    const std::shared_ptr<Batch>& batch,
    const std::shared_ptr<Session>& session) {
  return in_python([&] {
    const auto numbers = nb::cast<Numbers>(predictor_.attr("predict")(
        NamedBatch(std::make_shared<BatchHandle>(session, batch))));
    return std::vector<double>(numbers.data(), numbers.data() + numbers.size());
  });
}

Json OwnPredictor::measured(RankGroup* ranks) {
  if (ranks != nullptr) join(ranks->gather(share()));
  return Json::parse(
      in_python(
          [&] { return nb::cast<std::string>(predictor_.attr("measured")()); }),
      "what was measured");
}

std::string OwnPredictor::share() {
  return in_python([&] {
    const auto mine = nb::cast<nb::bytes>(predictor_.attr("share")());
    return std::string(mine.c_str(), mine.size());
  });
}

void OwnPredictor::join(const std::vector<std::string>& shares) {
  in_python([&] {
    nb::list all;
    for (const std::string& one : shares)
      all.append(nb::bytes(one.data(), one.size()));
    predictor_.attr("join")(all);
  });
}

}  // namespace penstock::python
