#include "python/engine/torch_group.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <type_traits>
#include <utility>

#include "python/engine/function.h"
#include "python/engine/gil.h"
#include "python/engine/own_stepper.h"

namespace penstock::python {
namespace {

static_assert(std::is_trivially_copyable_v<Ballot>);

nb::bytes bytes_of(const void* data, std::size_t size) {
  return nb::bytes(static_cast<const char*>(data), size);
}

RankGroupFacts facts_of_group(const nb::object& group) {
  RankPlace place;
  place.rank = {.rank = nb::cast<int>(group.attr("rank")),
                .world = nb::cast<int>(group.attr("world"))};
  place.local_rank = nb::cast<int>(group.attr("local_rank"));
  place.launcher = nb::cast<std::string>(group.attr("launcher"));
  return {.place = std::move(place),
          .backend = nb::cast<std::string>(group.attr("backend")),
          .hosts = nb::cast<std::vector<std::string>>(group.attr("hosts"))};
}

class TorchGroup final : public RankGroup {
 public:
  explicit TorchGroup(nb::object group)
      : RankGroup(facts_of_group(group)), group_(std::move(group)) {}

  ~TorchGroup() override {
    GilAcquire lock;
    group_.reset();
  }

  std::vector<std::string> gather(const std::string& mine) override {
    return in_python([&] {
      std::vector<std::string> texts;
      nb::object all =
          group_.attr("gather")(bytes_of(mine.data(), mine.size()));
      for (nb::handle each : all) {
        auto text = nb::cast<nb::bytes>(each);
        texts.emplace_back(text.c_str(), text.size());
      }
      return texts;
    });
  }

  void copy_from_first(std::span<const TensorView> tensors) override {
    in_python([&] { group_.attr("copy_from_first")(arrays(tensors)); });
  }

  void report(const std::string& failure) noexcept override {
    logged("reporting an error to the other ranks",
           [&] { group_.attr("report")(failure); });
  }

  void leave() noexcept override {
    logged("leaving the other ranks", [&] { group_.attr("leave")(); });
  }

 private:
  std::vector<Ballot> exchange(const Ballot& mine) override {
    std::vector<Ballot> ballots(static_cast<std::size_t>(rank().world));
    in_python([&] {
      nb::object all = group_.attr("exchange")(bytes_of(&mine, sizeof(Ballot)));
      std::size_t at = 0;
      for (nb::handle each : all) {
        auto one = nb::cast<nb::bytes>(each);
        PENSTOCK_ASSERT(one.size() == sizeof(Ballot), "ballots have one size");
        std::memcpy(&ballots.at(at++), one.c_str(), sizeof(Ballot));
      }
    });
    return ballots;
  }

  void add_up(std::span<const TensorView> tensors) override {
    in_python([&] { group_.attr("add_up")(arrays(tensors)); });
  }

  /// Views that Python may write into while the call lasts.
  static nb::list arrays(std::span<const TensorView> tensors) {
    nb::list made;
    for (const TensorView& one : tensors)
      made.append(numpy_array(one, nullptr));
    return made;
  }

  template <class Work>
  static void logged(const char* doing, Work work) noexcept {
    try {
      in_python(work);
    } catch (...) {
      log_exception(LogLevel::warning, doing);
    }
  }

  nb::object group_;
};

}  // namespace

std::unique_ptr<RankGroup> torch_group(nb::object group) {
  if (group.is_none()) return nullptr;
  return std::make_unique<TorchGroup>(std::move(group));
}

void bind_rank_place(nb::module_& module) {
  module.def(
      "rank_place",
      []() -> nb::object {
        const std::optional<RankPlace> place = rank_place();
        if (!place) return nb::none();
        nb::dict made;
        made["rank"] = place->rank.rank;
        made["world"] = place->rank.world;
        made["local_rank"] = place->local_rank;
        made["launcher"] = place->launcher;
        made["master"] = place->master;
        made["port"] = place->port;
        made["store_is_served"] = place->store_is_served;
        made["attempt"] = place->attempt;
        return made;
      },
      "Which of several ranks this process is, as its environment describes "
      "it; None where it is one process.");
  module.def("refuse_failure", &refuse_failure, nb::arg("text"),
             "Raises the failure that another rank has reported.");
}

}  // namespace penstock::python
