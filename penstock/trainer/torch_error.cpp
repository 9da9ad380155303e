#include "penstock/trainer/torch_error.h"

#include <c10/util/Exception.h>
#include <torch/headeronly/version.h>

#include <new>
#include <string>
#include <string_view>

#include "penstock/base/error.h"
#include "penstock/base/host_limits.h"

namespace penstock {
namespace {

constexpr const char* kWhere = "libtorch " TORCH_VERSION;

// Where this much cannot be allocated, an error of a library is one of memory.
constexpr std::size_t kSpareBytes = 64 << 20;

// libtorch's allocator for the host has no class of its own for its error.
// oneDNN says "could not create a primitive" when its memory ran out.
bool tells_of_no_host_memory(std::string_view text) {
  return text.find("DefaultCPUAllocator") != text.npos ||
         !has_addresses_left(kSpareBytes);
}

// Its first line; what follows names lines of libtorch's own code.
std::string first_line(const c10::Error& error) {
  std::string text = error.what_without_backtrace();
  return text.substr(0, text.find('\n'));
}

Error shortage(const char* doing, std::string why) {
  return Error(ErrorKind::out_of_memory,
               {.code = "trainer.out_of_memory",
                .what = "out of memory while " + std::string(doing),
                .where = kWhere,
                .why = std::move(why),
                .next = "lower train.micro_batch, raise device.memory_gib, or "
                        "use a smaller model"});
}

Error shortage_of_host(const char* doing, std::string why) {
  return Error(ErrorKind::out_of_memory,
               {.code = "trainer.out_of_memory",
                .what = "out of host memory while " + std::string(doing),
                .where = kWhere,
                .why = std::move(why),
                .next = "lower loader.workers or train.micro_batch, or give "
                        "the job more memory"});
}

}  // namespace

void throw_as_error(const char* doing) {
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const c10::OutOfMemoryError& error) {
    throw shortage(doing, first_line(error));
  } catch (const c10::AcceleratorError& error) {
    throw Error(ErrorKind::device,
                {.code = "trainer.device",
                 .what = "the device failed while " + std::string(doing),
                 .where = kWhere,
                 .why = first_line(error),
                 .next = "check this machine with 'penstock doctor'"});
  } catch (const c10::Error& error) {
    std::string why = first_line(error);
    if (tells_of_no_host_memory(why))
      throw shortage_of_host(doing, std::move(why));
    throw Error(ErrorKind::internal,
                {.code = "trainer.libtorch",
                 .what = "libtorch failed while " + std::string(doing),
                 .where = kWhere,
                 .why = std::move(why),
                 .next = "report this error with the job file"});
  } catch (const std::bad_alloc&) {
    throw shortage_of_host(doing, "the system refused a memory allocation");
  } catch (const std::exception& error) {
    if (tells_of_no_host_memory(error.what()))
      throw shortage_of_host(doing, error.what());
    throw Error(
        ErrorKind::internal,
        {.code = "trainer.unexpected",
         .what = "an unexpected error occurred while " + std::string(doing),
         .where = kWhere,
         .why = error.what(),
         .next = "report this error with the job file"});
  }
}

}  // namespace penstock
