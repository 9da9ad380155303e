#include "penstock/trainer/threads.h"

#include <ATen/Parallel.h>
#include <ATen/ops/ones.h>
#include <ATen/record_function.h>

#include <cstdint>

#include "penstock/base/tensor_limit.h"

namespace penstock {
namespace {

/// Elements that keep a thread of libtorch busy: it shares out no fewer.
constexpr std::int64_t kShared = 1 << 16;

}  // namespace

// Host work only, on no stream: it needs no ordering with a model's work.
void start_threads(int threads) {
  at::DisableRecordFunctionGuard unseen;
  const TensorLimit none(SIZE_MAX);       // this is not the model's memory
  at::set_num_threads(threads);           // makes those of its own pool
  at::ones({threads * kShared}).mul_(2);  // and here OpenMP makes its own
}

}  // namespace penstock
