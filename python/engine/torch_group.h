#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "penstock/session/session.h"

namespace penstock::python {

/// The ranks of a job as torch.distributed has them: `group`, an object of
/// penstock._training.ranks.Group, makes the calls. Null for None.
///
/// With Python's lock; the group's own calls take it.
std::unique_ptr<RankGroup> torch_group(nanobind::object group);

/// penstock._engine.rank_place().
void bind_rank_place(nanobind::module_& module);

}  // namespace penstock::python
