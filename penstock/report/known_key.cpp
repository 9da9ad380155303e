#include "penstock/report/known_key.h"

namespace penstock {

Json known_key_of(const Dataset& rows, SampleId sample) {
  try {
    return key_of(rows, sample);
  } catch (const Error& error) {
    log(LogLevel::warning, error.what());
    return sample;
  }
}

}  // namespace penstock
