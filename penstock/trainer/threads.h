#pragma once

namespace penstock {

/// Makes the threads that libtorch computes with on the host, all at once: it
/// would make them when they are first used, and end the process or wait for
/// ever where the system refuses them by then (open_model() asks before).
void start_threads(int threads);

}  // namespace penstock
