#include "penstock/sources/postgres/copy.h"

#include "penstock/sources/postgres/big_endian.h"

namespace penstock::postgres {
namespace {

constexpr std::string_view kSignature("PGCOPY\n\377\r\n\0", 11);
constexpr std::size_t kCopyHead =
    kSignature.size() + 8;  // flags, length of rest
/// A reader must understand what these flags mean; none is known to us.
constexpr std::uint32_t kCriticalFlags = 0xffff0000;
constexpr std::int16_t kTrailer = -1;

}  // namespace

// PostgreSQL manual, COPY, "Binary Format"; all integers are big-endian:
//   11 bytes  "PGCOPY\n\377\r\n\0", which shows damage by text-mode transfers
//   int32     flags; bits 16 to 31 are critical
//   int32     length of the header's extension, then that many bytes
//   rows      int16 number of fields, then of each field an int32 length (-1:
//             NULL) and that many bytes, as the type's send function made them
//   int16     -1, the trailer
CopyDecoder::CopyDecoder(std::size_t fields, std::string place)
    : place_(std::move(place)), row_(fields) {}

void CopyDecoder::refuse(std::string why) const {
  throw Error(
      ErrorKind::source,
      {.code = "postgres.stream",
       .what = "cannot read what the server sent",
       .where = place_,
       .why = std::move(why),
       .next = "try again; if the error persists, see the server's log"});
}

void CopyDecoder::feed(std::string_view bytes) {
  if (rest_.empty()) {
    pending_ = bytes;
    return;
  }
  rest_ += bytes;
  pending_ = rest_;
}

/// False, always; what is pending is kept until more comes.
bool CopyDecoder::keep_rest() {
  rest_ = std::string(pending_);
  pending_ = {};
  return false;
}

bool CopyDecoder::take_header() {
  std::string_view signature = pending_.substr(0, kSignature.size());
  if (signature != kSignature.substr(0, signature.size()))
    refuse("the data do not begin with the header of a binary COPY");
  if (pending_.size() < kCopyHead) return false;
  auto flags = load_big<std::uint32_t>(pending_.data() + kSignature.size());
  if ((flags & kCriticalFlags) != 0)
    refuse("the header has unknown features (flags " + std::to_string(flags) +
           ")");
  auto extension =
      load_big<std::int32_t>(pending_.data() + kSignature.size() + 4);
  if (extension < 0) refuse("the header has a negative length");
  std::size_t whole = kCopyHead + static_cast<std::size_t>(extension);
  if (pending_.size() < whole) return false;
  pending_.remove_prefix(whole);
  in_header_ = false;
  return true;
}

// Takes a row only when it is whole; before that nothing of it is consumed, so
// a second call with more bytes begins again at its start.
bool CopyDecoder::next() {
  if (in_header_ && !take_header()) return keep_rest();
  if (pending_.empty()) {
    rest_.clear();
    return false;
  }
  if (ended_) refuse("bytes follow the end of the data");
  if (pending_.size() < 2) return keep_rest();
  auto fields = load_big<std::int16_t>(pending_.data());
  std::size_t at = 2;
  if (fields == kTrailer) {
    ended_ = true;
    pending_.remove_prefix(at);
    return next();
  }
  if (static_cast<std::size_t>(fields) != row_.size() || fields < 0)
    refuse("a row has " + std::to_string(fields) + " columns, but " +
           std::to_string(row_.size()) + " were requested");
  for (Field& field : row_) {
    if (pending_.size() - at < 4) return keep_rest();
    auto size = load_big<std::int32_t>(pending_.data() + at);
    at += 4;
    field = {};
    if (size == kNullLength) continue;
    if (size < 0) refuse("a value has the length " + std::to_string(size));
    if (pending_.size() - at < static_cast<std::size_t>(size))
      return keep_rest();
    field = {pending_.data() + at, static_cast<std::size_t>(size)};
    at += field.size;
  }
  pending_.remove_prefix(at);
  return true;
}

void CopyDecoder::finish() const {
  if (in_header_ || !rest_.empty() || !pending_.empty())
    refuse("the data end in the middle of a row");
  if (!ended_) refuse("the data end without a trailer");
}

CopyOut::CopyOut(Connection& connection, const std::string& sql)
    : connection_(connection) {
  Result result = connection_.execute(sql);
  PENSTOCK_ASSERT(PQresultStatus(result.get()) == PGRES_COPY_OUT,
                  "one of the statements is a COPY TO STDOUT");
  running_ = true;
}

CopyOut::~CopyOut() {
  if (!running_ || !connection_.alive()) return;
  connection_.cancel();  // if it fails, the rest is read and dropped
  try {
    char* bytes = nullptr;
    while (connection_.copy_bytes(&bytes) > 0) PQfreemem(bytes);
    while (const Result result = connection_.next_result())
      if (PQresultStatus(result.get()) == PGRES_COPY_OUT) break;
  } catch (const std::exception&) {  // a stop: the connection is broken off
  }
}

// The COPY may be one of several statements of one text. So after its data all
// results are taken: only then is the connection free, and an error of a later
// statement (a COMMIT that fails) must not be lost.
std::optional<std::string_view> CopyOut::next() {
  char* bytes = nullptr;
  int size = connection_.copy_bytes(&bytes);
  bytes_.reset(bytes);
  if (size > 0) return std::string_view(bytes, static_cast<std::size_t>(size));
  running_ = false;
  std::optional<Error> failed;
  while (const Result result = connection_.next_result()) {
    ExecStatusType status = PQresultStatus(result.get());
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || failed)
      continue;
    failed = connection_.error(result.get());
    if (status == PGRES_COPY_OUT) break;
  }
  if (failed) throw *failed;
  // libpq itself failed; the reason is only with the connection.
  if (size == -2) throw connection_.error(nullptr);
  return std::nullopt;
}

}  // namespace penstock::postgres
