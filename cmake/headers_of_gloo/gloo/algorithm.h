#pragma once
// libtorch's header of ProcessGroupGloo includes this one and uses nothing of
// it. See context.h.
