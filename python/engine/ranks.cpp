#include "python/engine/ranks.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "penstock/session/session.h"

namespace penstock::python {
namespace {

namespace nb = nanobind;

nb::bytes bytes_of(const std::string& text) {
  return nb::bytes(text.data(), text.size());
}

[[noreturn]] void refuse_result(std::string why) {
  throw Error(
      ErrorKind::request,
      {.code = "ranks.agree",
       .what = "cannot compare the ranks",
       .where = "what 'agree' returned",
       .why = std::move(why),
       .next =
           "pass an 'agree' that takes this rank's bytes and returns a list of "
           "the bytes of all ranks, as MPI.COMM_WORLD.allgather does"});
}

std::vector<std::string> texts_of(const nb::object& result) {
  if (!nb::isinstance<nb::sequence>(result))
    refuse_result("the result is not a list of bytes");
  std::vector<std::string> texts;
  for (nb::handle each : result) {
    nb::bytes text;
    if (!nb::try_cast(each, text))
      refuse_result("item " + std::to_string(texts.size()) + " is not bytes");
    texts.emplace_back(text.c_str(), text.size());
  }
  return texts;
}

}  // namespace

void bind_ranks(nb::module_& module) {
  module.def(
      "compare_ranks",
      [](int rank, int world, const std::string& facts, nb::object agree) {
        compare_ranks(
            [&](const std::string& mine) {
              return texts_of(agree(bytes_of(mine)));
            },
            {.rank = rank, .world = world}, Json::parse(facts, "the facts"));
      },
      nb::arg("rank"), nb::arg("world"), nb::arg("facts"), nb::arg("agree"),
      "Raises an Error where the ranks have not opened the same.");
  module.def(
      "failure_text",
      [](int rank, const std::string& kind, const std::string& message) {
        return bytes_of(failure_text({.rank = rank}, kind, message));
      },
      nb::arg("rank"), nb::arg("kind"), nb::arg("message"),
      "What a rank gives to the others when its opening has failed.");
  nb::class_<RankLifelines>(module, "RankLifelines",
                            "See penstock/session/rank_lifelines.h.")
      .def(
          "__init__",
          [](RankLifelines* made, int rank, int world,
             const std::string& master, const nb::object& gather) {
            new (made) RankLifelines({.rank = rank, .world = world}, master,
                                     [&](const std::string& mine) {
                                       return texts_of(gather(bytes_of(mine)));
                                     });
          },
          nb::arg("rank"), nb::arg("world"), nb::arg("master"),
          nb::arg("gather"))
      .def("gone", &RankLifelines::gone,
           "Ranks whose processes have ended without leave().")
      .def("leave", &RankLifelines::leave, "This rank ends as planned.");
}

}  // namespace penstock::python
