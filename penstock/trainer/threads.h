#pragma once

namespace penstock {

/// Starts the threads that libtorch computes with on the host, all at once: it
/// would start them when they are first used, and end the process or hang where
/// the system refuses them then (open_model() checks before).
void start_threads(int threads);

}  // namespace penstock
