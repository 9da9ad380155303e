#include "penstock/trainer/borrowed.h"

#include <ATen/ops/from_blob.h>

#include "penstock/base/error.h"
#include "penstock/trainer/cuda_library.h"

namespace penstock {
namespace {

at::ScalarType type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::float32:
      return at::kFloat;
    case Dtype::float64:
      return at::kDouble;
    case Dtype::int64:
      return at::kLong;
    case Dtype::boolean:
      return at::kBool;
    case Dtype::uint8:
      return at::kByte;
    case Dtype::int8:
      return at::kChar;
    case Dtype::int16:
      return at::kShort;
    case Dtype::uint16:
      return at::kUInt16;
    case Dtype::int32:
      return at::kInt;
    case Dtype::uint32:
      return at::kUInt32;
    case Dtype::uint64:
      return at::kUInt64;
    case Dtype::float16:
      return at::kHalf;
    case Dtype::bfloat16:
      return at::kBFloat16;
  }
  fail_assertion("dtype", "every dtype has a type of libtorch", __FILE__,
                 __LINE__);
}

at::Device device_of(const TensorView& view) {
  if (view.memory != MemoryKind::cuda) return at::Device(at::kCPU);
  return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(view.device_id));
}

}  // namespace

at::Tensor borrowed(const TensorView& view) {
  return at::for_blob(view.data, view.shape)
      .options(at::TensorOptions(type_of(view.dtype)).device(device_of(view)))
      .target_device(device_of(view))
      .make_tensor();
}

Dtype dtype_of(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kFloat) return Dtype::float32;
  if (tensor.scalar_type() == at::kDouble) return Dtype::float64;
  if (tensor.scalar_type() == at::kInt) return Dtype::int32;
  PENSTOCK_ASSERT(tensor.scalar_type() == at::kLong,
                  "a state holds float32, float64, int32 and int64");
  return Dtype::int64;
}

TensorView numbers_of(const at::Tensor& tensor) {
  PENSTOCK_ASSERT(tensor.is_non_overlapping_and_dense(),
                  "a parameter's memory has no gaps");
  const at::Device device = tensor.device();
  return {.data = static_cast<std::byte*>(tensor.mutable_data_ptr()),
          .dtype = dtype_of(tensor),
          .shape = {tensor.numel()},
          .memory = device.is_cuda() ? MemoryKind::cuda : MemoryKind::cpu,
          .device_id = device.is_cuda() ? device.index() : 0};
}

at::Device torch_device(const Device& device) {
  switch (device.memory_kind()) {
    case MemoryKind::cpu:
      return at::Device(at::kCPU);
    case MemoryKind::cuda: {
      const CudaLibrary& cuda = cuda_library();
      if (cuda.devices == 0)
        throw Error(ErrorKind::device,
                    {.code = "trainer.no_cuda",
                     .what = "cannot train on " + device.name(),
                     .where = "device",
                     .why = cuda.why,
                     .next = "set PENSTOCK_TORCH_DIR to a PyTorch with CUDA "
                             "and build again, or set \"device\" to \"cpu\""});
      return at::Device(at::kCUDA,
                        static_cast<at::DeviceIndex>(device.number()));
    }
    default:
      throw Error(
          ErrorKind::request,
          {.code = "trainer.device",
           .what = "cannot train on " + device.name(),
           .where = "device",
           .why = "libtorch cannot compute in the memory of this device",
           .next = "set \"device\" to \"cpu\" or \"cuda\""});
  }
}

OnStream::OnStream(at::Device device, const Stream& stream) {
  if (device.is_cpu()) return;
  // What libtorch makes of a cudaStream_t that is not its own: the address is
  // the id (c10::cuda::getStreamFromExternal, which would need the CUDA half
  // when this is linked).
  auto id = reinterpret_cast<c10::StreamId>(stream.handle());
  guard_.emplace(c10::Stream(c10::Stream::UNSAFE, device, id));
}

}  // namespace penstock
