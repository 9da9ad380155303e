#include "penstock/loader/targets.h"

#include <string>

namespace penstock {
namespace {

[[noreturn]] void refuse(std::string where, std::string why) {
  throw Error(ErrorKind::request,
              {.code = "loader.next_into",
               .what = "cannot write batches into these tensors",
               .where = std::move(where),
               .why = std::move(why),
               .next = "pass contiguous tensors like those of a batch, with "
                       "room for its rows, in the order of tensors()"});
}

void check_target(const TensorView& to, const BatchTensor& tensor,
                  std::int64_t rows, const Device& device) {
  std::string where = "tensor '" + tensor.name + "'";
  if (tensor.what == BatchTensor::What::padded ||
      tensor.what == BatchTensor::What::packed)
    refuse(where,
           "the shape of the tensor differs from batch to batch; use next()");
  if (to.dtype != tensor.dtype)
    refuse(where, "found " + std::string(name_of(to.dtype)) + ", expected " +
                      std::string(name_of(tensor.dtype)));
  Shape expected{rows};
  expected.insert(expected.end(), tensor.row_shape.begin(),
                  tensor.row_shape.end());
  Shape found = to.shape;
  bool fits = found.size() == expected.size() && found[0] >= rows;
  if (fits) found[0] = rows;
  if (!fits || found != expected)
    refuse(where, "found the shape " + text_of(to.shape) + ", expected " +
                      text_of(expected) + " or more rows");
  if (to.memory != MemoryKind::cpu && to.memory != MemoryKind::cuda_host &&
      to.memory != device.memory_kind())
    refuse(where, "the tensor is neither on the device '" + device.name() +
                      "' nor on the host");
}

}  // namespace

void check_targets(std::span<const TensorView> to,
                   const std::vector<BatchTensor>& tensors, std::int64_t rows,
                   const Device& device) {
  if (to.size() != tensors.size())
    refuse("next_into", "found " + std::to_string(to.size()) +
                            " tensors, expected " +
                            std::to_string(tensors.size()));
  for (std::size_t t = 0; t < to.size(); ++t)
    check_target(to[t], tensors[t], rows, device);
}

FilledBatch copied(Batch batch, std::span<const TensorView> to,
                   Stream& stream) {
  batch.wait_on(stream);
  std::span<const NamedTensor> tensors = batch.tensors();
  for (std::size_t t = 0; t < tensors.size(); ++t)
    stream.copy(to[t].data, tensors[t].view.data, tensors[t].view.bytes());
  return {.at = batch.at(),
          .rows = batch.rows(),
          .ids = {batch.ids().begin(), batch.ids().end()},
          .rejected = {batch.rejected().begin(), batch.rejected().end()}};
}

}  // namespace penstock
