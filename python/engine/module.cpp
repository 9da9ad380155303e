// The module penstock._engine: faces of the rooms, given to Python. No logic.
#include <nanobind/nanobind.h>

#include "build_name.h"
#include "penstock/base/base.h"
#include "penstock/monitor/monitor.h"
#include "python/engine/arrow_scanner.h"
#include "python/engine/batch.h"
#include "python/engine/batches.h"
#include "python/engine/engine.h"
#include "python/engine/gil.h"
#include "python/engine/messages.h"
#include "python/engine/monitor.h"
#include "python/engine/object_texts.h"
#include "python/engine/predict.h"
#include "python/engine/prepare.h"
#include "python/engine/progress_line.h"
#include "python/engine/ranks.h"
#include "python/engine/rows.h"
#include "python/engine/sampling.h"
#include "python/engine/source.h"
#include "python/engine/source_columns.h"
#include "python/engine/source_texts.h"
#include "python/engine/table.h"
#include "python/engine/tokenizer.h"
#include "python/engine/torch_group.h"
#include "python/engine/train.h"
#include "python/engine/verdict.h"

namespace {

void check_core() {
  try {
    penstock::check_core("Python's package", PENSTOCK_BUILD_NAME);
  } catch (const penstock::Error& other) {
    throw nanobind::import_error(other.what());
  }
}

}  // namespace

NB_MODULE(_engine, module) {
  using namespace penstock::python;
  check_core();
  // A loader that still is a global variable at the end is no leak.
  nanobind::set_leak_warnings(false);
  module.doc() = "The engine of Penstock; `penstock` is its face.";
  module.attr("version") = PENSTOCK_VERSION;
  translate_errors();
  keep_messages();
  let_pyarrow_read(module);
  static const std::shared_ptr<void> nvtx = penstock::tell_nvtx_where_asked();
  bind_field(module);
  bind_batch(module);
  bind_rows(module);
  bind_batches(module);
  bind_engine(module);
  bind_monitor(module);
  bind_object_texts(module);
  bind_prepare(module);
  bind_progress_line(module);
  bind_ranks(module);
  bind_sampling(module);
  bind_source(module);
  bind_source_columns(module);
  bind_source_texts(module);
  bind_table(module);
  bind_tokenizer(module);
  bind_rank_place(module);
  bind_train(module);
  bind_predict(module);
  bind_verdict(module);
  module.def("end_of_python", &end_of_python,
             "To be called when Python ends, before loaders are closed.");
  module.def("end_of_calls", &end_of_calls,
             "To be called when they are closed.");
  module.def("write_messages", &write_messages,
             "Hands over what the engine's threads wrote up to now.");
}
