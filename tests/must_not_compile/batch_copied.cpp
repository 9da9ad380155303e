#include "penstock/loader/loader.h"

// A batch owns its slot: there is one of it.
penstock::Batch passed_on(penstock::Batch& batch) {
#ifdef MISUSE
  return batch;
#else
  return std::move(batch);
#endif
}
