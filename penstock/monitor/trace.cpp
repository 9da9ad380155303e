#include "penstock/monitor/trace.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <limits>

#include "penstock/base/kernel_files.h"

namespace penstock {
namespace {

// Tracks beside those of threads, whose numbers are the kernel's.
constexpr int kPipeline = 1, kDevice = 2;
constexpr pid_t kLoopTrack = 1, kDeviceTrack = 1;

pid_t this_thread() {
  thread_local const auto id = static_cast<pid_t>(::syscall(SYS_gettid));
  return id;
}

std::string name_of_thread(pid_t thread) {
  try {
    std::string name = real_files().read("/proc/self/task/" +
                                         std::to_string(thread) + "/comm");
    while (!name.empty() && name.back() == '\n') name.pop_back();
    return name;
  } catch (const Error&) {
    return "thread";
  }
}

std::string metadata(const char* kind, int process, pid_t thread,
                     const std::string& name) {
  Json event;
  event["name"] = kind;
  event["ph"] = "M";
  event["pid"] = process;
  event["tid"] = static_cast<std::int64_t>(thread);
  event["args"]["name"] = name;
  return event.dump();
}

}  // namespace

class Trace::Keeper : public SpanListener {
 public:
  explicit Keeper(std::size_t most) : most_(most) {}

  void ended(const Span& span) override {
    Lock lock(mutex_);
    if (kept_.size() == most_) {
      ++dropped_;
      return;
    }
    const bool on_thread = span.lane == SpanLane::thread;
    const pid_t thread = on_thread ? this_thread() : kLoopTrack;
    // A thread that has ended has no name any more.
    if (on_thread && !threads_.contains(thread))
      threads_[thread] = name_of_thread(thread);
    auto [name, added] =
        names_.try_emplace(std::string(span.name), names_.size());
    kept_.push_back({.begin = span.begin,
                     .length = span.end - span.begin,
                     .step = span.step,
                     .thread = thread,
                     .name = static_cast<std::uint16_t>(name->second),
                     .lane = span.lane});
  }

  std::size_t size() const {
    Lock lock(mutex_);
    return kept_.size();
  }

  std::string text() const {
    Lock lock(mutex_);
    std::string text =
        "{\"displayTimeUnit\": \"ms\", \"otherData\": {\"dropped\": " +
        std::to_string(dropped_) + "}, \"traceEvents\": [\n";
    text += metadata("process_name", kPipeline, 0, "pipeline") + ",\n" +
            metadata("process_name", kDevice, 0, "device") + ",\n" +
            metadata("thread_name", kPipeline, kLoopTrack, "loop") + ",\n" +
            metadata("thread_name", kDevice, kDeviceTrack, "stream");
    for (const auto& [thread, name] : threads_)
      text += ",\n" + metadata("thread_name", kPipeline, thread,
                               name + " " + std::to_string(thread));
    std::vector<std::string> names(names_.size());
    for (const auto& [name, at] : names_) names[at] = Json(name).dump();
    for (const Piece& piece : kept_) text += ",\n" + event(piece, names);
    return text + "\n]}\n";
  }

 private:
  struct Piece {
    Nanoseconds begin, length;
    std::int64_t step;
    pid_t thread;
    std::uint16_t name;
    SpanLane lane;
  };

  // A complete event ("ph": "X") of the Trace Event Format, which Perfetto and
  // chrome://tracing read; times are in microseconds.
  static std::string event(const Piece& piece,
                           const std::vector<std::string>& names) {
    char numbers[160];
    std::snprintf(numbers, sizeof(numbers),
                  R"(, "ph": "X", "ts": %.3f, "dur": %.3f, "pid": %d, "tid": )"
                  "%lld",
                  1e-3 * static_cast<double>(piece.begin.count()),
                  1e-3 * static_cast<double>(piece.length.count()),
                  piece.lane == SpanLane::device ? kDevice : kPipeline,
                  static_cast<long long>(piece.thread));
    std::string text = "{\"name\": " + names[piece.name] + numbers;
    if (piece.step >= 0)
      text += ", \"args\": {\"step\": " + std::to_string(piece.step) + "}";
    return text + "}";
  }

  const std::size_t most_;
  mutable Mutex mutex_;
  std::vector<Piece> kept_ PENSTOCK_GUARDED_BY(mutex_);
  std::int64_t dropped_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::size_t> names_ PENSTOCK_GUARDED_BY(mutex_);
  std::map<pid_t, std::string> threads_ PENSTOCK_GUARDED_BY(mutex_);
};

Trace::Trace(std::size_t most)
    : keeper_(std::make_shared<Keeper>(most)),
      listening_(listen_to_spans(keeper_)) {}

std::size_t Trace::kept() const { return keeper_->size(); }

std::string Trace::text() const { return keeper_->text(); }

void Trace::write(const std::filesystem::path& file) const {
  real_files().write_atomic(file, keeper_->text());
}

}  // namespace penstock
