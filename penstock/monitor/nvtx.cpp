#include "penstock/monitor/nvtx.h"

#include <dlfcn.h>

#include <cstdlib>

#include "penstock/base/log.h"

namespace penstock {
namespace {

// Ranges of NVTX are a stack for each thread, so begin and end must pair up on
// one thread; `depth` counts those that were pushed.
class NvtxRanges : public SpanListener {
 public:
  explicit NvtxRanges(const NvtxCalls& calls) : calls_(calls) {}

  void began(std::string_view name) override {
    calls_.push(std::string(name).c_str());
    ++depth();
  }
  void ended(const Span& span) override {
    // One that began before we listened was not pushed.
    if (span.lane != SpanLane::thread || depth() == 0) return;
    --depth();
    calls_.pop();
  }

 private:
  static int& depth() {
    thread_local int ranges = 0;
    return ranges;
  }
  const NvtxCalls calls_;
};

}  // namespace

NvtxCalls open_nvtx(const std::string& library) {
  NvtxCalls calls;
  void* opened = ::dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (opened == nullptr) return calls;
  calls.push =
      reinterpret_cast<decltype(calls.push)>(::dlsym(opened, "nvtxRangePushA"));
  calls.pop =
      reinterpret_cast<decltype(calls.pop)>(::dlsym(opened, "nvtxRangePop"));
  return calls;
}

std::shared_ptr<void> tell_nvtx(const NvtxCalls& calls) {
  if (calls.push == nullptr || calls.pop == nullptr) return nullptr;
  return listen_to_spans(std::make_shared<NvtxRanges>(calls));
}

std::shared_ptr<void> tell_nvtx_where_asked() {
  const char* named = std::getenv("PENSTOCK_NVTX");
  if (named == nullptr && std::getenv("NVTX_INJECTION64_PATH") == nullptr)
    return nullptr;
  const std::string library = named != nullptr ? named : "libnvToolsExt.so.1";
  auto telling = tell_nvtx(open_nvtx(library));
  if (telling == nullptr)
    log(LogLevel::warning,
        "NVIDIA's tools will not show the names of stages: " + library +
            " cannot be opened, or holds no NVTX; name the library with "
            "PENSTOCK_NVTX");
  return telling;
}

}  // namespace penstock
