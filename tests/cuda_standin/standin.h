#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>

/// Controls the stand-in for the CUDA runtime: GPUs of host memory, whose
/// streams are threads that take their time. Thread-safe.
namespace cuda_standin {

struct Machine {
  int devices = 2;
  std::size_t memory = std::size_t{512} << 20;  ///< of each
  int driver = 12080;        ///< 0: none; below the runtime's: too old
  int major = 9;             ///< compute capability
  int most_delay_us = 200;   ///< before each piece of work, drawn
  bool jpeg_engines = true;  ///< of nvJPEG
};
/// Takes the place of the machine that was there; nothing of it may be in use.
void start(const Machine& machine);

/// True once a device's primary context has been created.
bool has_context(int device);
/// Bytes of a device that are allocated.
std::size_t used(int device);
/// Copies that were queued since start() from or to host memory that is not
/// pinned.
std::size_t pageable_copies();
/// Images that nvJPEG was given since start().
std::size_t decoded_images();
/// The k-th call of this function from now on, 1 being the next, fails.
void fail(const std::string& function, int k, cudaError_t error);

// What the files of the stand-in share.

/// At the top of every call: the error that was asked for, or cudaSuccess. It
/// creates the context of the thread's current device, as the manual says that
/// most calls do (CUDA C++ Programming Guide, "Initialization").
cudaError_t begin_call(const char* function, bool needs_context = true);
/// The same for a call that may disturb a graph that is being captured.
cudaError_t begin_unsafe_call(const char* function);
/// Keeps it for cudaGetLastError().
cudaError_t ended(cudaError_t error);

int current_device();
Machine machine();
std::recursive_mutex& lock_of_all();

enum class Where { nowhere, device, pinned };
/// What [at, at + bytes) is; `device` is set where it is a device's.
Where where_is(const void* at, std::size_t bytes, int* device = nullptr);

/// Adds work to a stream, which runs it after a delay. While the stream is
/// captured it is counted and not run.
cudaError_t queue(cudaStream_t stream, std::function<cudaError_t()> work);
bool is_of_current_device(cudaStream_t stream);
/// Waits until a device has nothing to do.
void synchronize_device(int device);
/// A call that may disturb a capture was made.
cudaError_t check_capture();
void stop_streams();
void count_pageable_copy();
void count_decoded(std::size_t images);

}  // namespace cuda_standin

/// The same for programs in other languages.
extern "C" std::size_t cuda_standin_used(int device);
extern "C" int cuda_standin_has_context(int device);
