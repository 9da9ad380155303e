#include "python/engine/own_trainer.h"

#include <nanobind/stl/string.h>

#include "python/engine/own_stepper.h"
#include "python/engine/torch_group.h"
#include "python/engine/torch_memory.h"

namespace penstock::python {

OwnTrainer trainer_of_torch(const nb::object& maker) {
  return {.cuda_unavailable_reason =
              [&maker] {
                return in_python([&] {
                  return nb::cast<std::string>(
                      maker.attr("cuda_unavailable_reason")());
                });
              },
          .open_ranks =
              [&maker](const Job& job) {
                const bool may_use_gpu = job.device.kind != "cpu";
                return in_python([&] {
                  return torch_group(maker.attr("open_ranks")(may_use_gpu));
                });
              },
          .allocator = torch_allocator()};
}

}  // namespace penstock::python
