#include "penstock/report/metrics/tensorboard.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "penstock/base/base.h"
#include "penstock/report/metrics/sink.h"

namespace penstock {
namespace {

std::array<std::uint32_t, 256> crc_table() {
  constexpr std::uint32_t kReversedPolynomial = 0x82F63B78;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t rest = i;
    for (int bit = 0; bit < 8; ++bit)
      rest = rest >> 1 ^ ((rest & 1) != 0 ? kReversedPolynomial : 0);
    table[i] = rest;
  }
  return table;
}

/// Records hold sums that are masked, since a sum over bytes that hold sums is
/// a weak one.
std::uint32_t masked(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8;
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

std::uint32_t crc32c(std::string_view bytes) {
  static const std::array<std::uint32_t, 256> table = crc_table();
  std::uint32_t sum = 0xffffffff;
  for (const char c : bytes)
    sum = table[(sum ^ static_cast<unsigned char>(c)) & 255] ^ sum >> 8;
  return ~sum;
}

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
