#include "penstock/session/predictor.h"

#include "penstock/base/error.h"

namespace penstock {

Error no_text_error() {
  return Error(ErrorKind::request,
               {.code = "predict.no_text",
                .what = "cannot generate a text",
                .where = "the model of the run",
                .why = "the model does not predict tokens",
                .next = "name a run of a \"causal_lm\" model, or leave out "
                        "--max-tokens"});
}

std::vector<std::vector<std::int32_t>> Predictor::generate(
    const std::shared_ptr<Batch>&, const std::shared_ptr<Session>&,
    std::int64_t, const Generation&) {
  throw no_text_error();
}

}  // namespace penstock
