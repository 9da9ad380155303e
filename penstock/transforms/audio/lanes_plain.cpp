#define PENSTOCK_LANES 2
#include "penstock/transforms/audio/lanes_code.h"

namespace penstock::lanes {

const Code& plain() { return kCode; }

}  // namespace penstock::lanes
