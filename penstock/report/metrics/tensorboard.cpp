#include "penstock/report/metrics/tensorboard.h"

#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <span>

#include "penstock/base/base.h"
#include "penstock/base/crc32c.h"
#include "penstock/report/metrics/sink.h"

namespace penstock {
namespace {

/// Records hold sums that are masked, since a sum over bytes that hold sums is
/// a weak one.
std::uint32_t masked(std::string_view bytes) {
  return std::rotr(crc32c(std::as_bytes(std::span(bytes))), 15) + 0xa282ead8;
}

template <class Number>
std::string bytes_of(Number number) {
  static_assert(std::endian::native == std::endian::little);
  std::string bytes(sizeof(number), '\0');
  std::memcpy(bytes.data(), &number, sizeof(number));
  return bytes;
}

std::string record_of(const std::string& data) {
  const std::string length = bytes_of(std::uint64_t{data.size()});
  return length + bytes_of(masked(length)) + data + bytes_of(masked(data));
}

// Fields of protocol buffers: a key of number and kind, and the value.
enum Kind { kVarint = 0, kDouble = 1, kBytes = 2, kFloat = 5 };

std::string varint(std::uint64_t number) {
  std::string bytes;
  for (; number >= 128; number >>= 7)
    bytes += static_cast<char>((number & 127) | 128);
  return bytes + static_cast<char>(number);
}

std::string key(int field, Kind kind) {
  return varint(static_cast<std::uint64_t>(field << 3 | kind));
}

std::string text(int field, const std::string& bytes) {
  return key(field, kBytes) + varint(bytes.size()) + bytes;
}

std::string event(double time, std::int64_t step, const std::string& what) {
  return key(1, kDouble) + bytes_of(time) + key(2, kVarint) +
         varint(static_cast<std::uint64_t>(step)) + what;
}

std::string scalar(const std::string& tag, double value) {
  const std::string entry =
      text(1, tag) + key(2, kFloat) + bytes_of(static_cast<float>(value));
  return text(1, entry);
}

std::string file_name() {
  char host[256] = "host";
  (void)::gethostname(host, sizeof(host) - 1);
  return "events.out.tfevents." +
         std::to_string(static_cast<std::int64_t>(seconds_since_1970())) + "." +
         host + "." + std::to_string(::getpid());
}

}  // namespace

TensorBoardFile::TensorBoardFile(const std::filesystem::path& folder)
    : file_(folder / file_name()) {
  append(record_of(event(seconds_since_1970(), 0, text(3, "brain.Event:2"))));
}

void TensorBoardFile::append(const std::string& bytes) {
  std::ofstream file(file_, std::ios::binary | std::ios::app);
  file << bytes;
  file.flush();
  if (file) return;
  throw Error(ErrorKind::request,
              {.code = "file.write",
               .what = "cannot write the events for TensorBoard",
               .where = file_.string(),
               .why = std::strerror(errno),
               .next = "free some space, or set output.tensorboard to false"});
}

void TensorBoardFile::add(std::int64_t step, double time,
                          const Metrics& metrics) {
  std::string summary;
  for (const auto& [name, value] : metrics)
    if (std::isfinite(value)) summary += scalar(name, value);
  append(record_of(event(time, step, text(5, summary))));
}

void TensorBoardFile::add_epoch(std::int64_t step, double time,
                                const Metrics& metrics) {
  Metrics named = metrics;
  for (auto& [name, value] : named) name.insert(0, "epoch/");
  add(step, time, named);
}

}  // namespace penstock
