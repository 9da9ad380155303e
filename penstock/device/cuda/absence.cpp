#include "penstock/device/cuda/absence.h"

namespace penstock::cuda {
namespace {

std::string shown(int version) {
  return std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

Error refusal(std::string code, std::string why, std::string next) {
  return Error(ErrorKind::device, {.code = std::move(code),
                                   .what = "cannot open device 'cuda'",
                                   .where = "device",
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

}  // namespace

bool has_device(const Answer& answer) {
  return answer.problem.empty() && !answer.old_driver && answer.devices > 0;
}

Error absence(const Answer& answer) {
  if (answer.driver == 0)
    return refusal(
        "device.no_driver",
        "this machine has no NVIDIA driver (no libcuda.so.1 that "
        "works)",
        "install the driver, start the container with '--gpus all', or use "
        "'cpu'");
  if (answer.old_driver)
    return refusal("device.old_driver",
                   "the NVIDIA driver supports CUDA " + shown(answer.driver) +
                       ", this build needs CUDA " + shown(answer.runtime),
                   "update the driver, or build with an older CUDA toolkit");
  std::string visible = answer.visible.empty() ? ""
                                               : "; CUDA_VISIBLE_DEVICES is '" +
                                                     answer.visible + "'";
  if (answer.problem.empty() || answer.problem == "cudaErrorNoDevice")
    return refusal("device.no_gpu",
                   "there is an NVIDIA driver (CUDA " + shown(answer.driver) +
                       ") but no visible GPU" + visible,
                   "check `nvidia-smi` and CUDA_VISIBLE_DEVICES");
  return refusal("device.cuda",
                 "the CUDA runtime reports " + answer.problem + visible,
                 "check `nvidia-smi` and the system's log");
}

Error no_such(int number, int devices) {
  return refusal("device.no_such_gpu",
                 "found " + std::to_string(devices) + " GPU" +
                     (devices == 1 ? "" : "s") +
                     ", cuda:0 to cuda:" + std::to_string(devices - 1) +
                     ", not cuda:" + std::to_string(number),
                 "name one of these, as in \"device\": \"cuda:0\"; "
                 "CUDA_VISIBLE_DEVICES hides the others");
}

Error too_old(const std::string& device, int major, int minor) {
  return refusal("device.too_old",
                 device + " has compute capability " + std::to_string(major) +
                     "." + std::to_string(minor) + ", this build needs 8.0",
                 "use a GPU from 2020 or later, or 'cpu'");
}

}  // namespace penstock::cuda
