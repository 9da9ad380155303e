// Your own training loop over a job file: cpp_loop JOB
// [section.key=value]
#include <penstock/run/run.h>

#include <cstdio>
#include <exception>
#include <numeric>

namespace {

double sum = 0;
std::int64_t steps = 0;

/// Stands for a model. On the device `cpu` a tensor is ordinary memory.
void my_step(std::span<const penstock::NamedTensor> tensors,
             penstock::Stream& stream) {
  stream.synchronize();
  const penstock::TensorView& first = tensors.front().view;
  auto* values = reinterpret_cast<const float*>(first.data);
  sum =
      std::accumulate(values, values + penstock::elements_of(first.shape), sum);
  ++steps;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::fprintf(stderr, "usage: cpp_loop JOB [section.key=value...]\n");
    return 2;
  }
  penstock::Job job = penstock::load_job(argv[1], {argv + 2, argv + argc});
  auto loader = penstock::open_loader(job);
  while (std::optional<penstock::Batch> batch = loader->next())
    my_step(batch->tensors(), loader->stream());
  std::printf("%lld steps over %lld rows, sum of the first field %.6g\n",
              static_cast<long long>(steps),
              static_cast<long long>(loader->rows().rows()), sum);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
