#pragma once

/// Models whose steps libtorch takes.
///
///     auto stepper = make_stepper(model, data, device, 100);
///     std::unique_ptr<Stream> stream = device.make_stream();
///     for (std::int64_t step = 0; step < 100; ++step) {
///       auto batch = std::make_shared<Batch>(loader.next(*stream).value());
///       stepper->step(batch, *stream, step);
///     }
///     std::printf("loss %g\n", stepper->losses(true).back());

#include <cstdint>
#include <memory>
#include <string>

#include "penstock/session/session.h"

namespace penstock {

/// Makes a model whose steps are taken by libtorch. It holds no reference to
/// `data`, and computes where `device`, which outlives it, has its memory.
///
/// Its work is done in the order of the calls, whichever streams it is queued
/// on. One thread, which is also the one that made it. It sets the number of
/// threads that libtorch uses in this process. Throws Error(request) for data
/// or a device that it cannot use; no exception of libtorch leaves this API,
/// each becomes an Error.
std::unique_ptr<Stepper> make_stepper(const ModelSpec& spec,
                                      const FittedFields& data, Device& device,
                                      std::int64_t steps);

/// The same model for predictions alone: without gradients and optimiser.
std::unique_ptr<Predictor> make_predictor(const ModelSpec& spec,
                                          const FittedFields& data,
                                          Device& device);

/// Why libtorch cannot compute on a GPU here; empty when it can. Opens its CUDA
/// half.
std::string cuda_unavailable_reason();

/// "libtorch 2.11.0, 2 threads, no CUDA".
std::string build_info();

}  // namespace penstock
