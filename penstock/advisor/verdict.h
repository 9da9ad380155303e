#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/json.h"

namespace penstock {

/// What holds a run back.
enum class Limit { compute, data, copy, order, host, outside, unknown };

std::string_view name_of(Limit limit);

/// One thing to change, with what it would bring.
struct Action {
  std::string knob;  ///< a key of the job: "loader.cache"
  Json from;         ///< what the window was measured with
  Json to;
  double predicted_gain = 0;  ///< of the rate: 0.5 means half as fast again
  std::string cost;
};

/// What was found about a window.
struct Verdict {
  Limit limit = Limit::unknown;
  std::string stage;    ///< the stage that is slowest, when data is the limit
  std::string cause;    ///< one sentence
  std::string because;  ///< the measured numbers behind it
  std::vector<Action> actions;  ///< the best first; each gains 2 % or more
  std::string no_action;  ///< why there is no action; empty where there is one

  Json json() const;
};

}  // namespace penstock
