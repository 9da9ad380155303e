#include "penstock/transforms/checked_kind.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "penstock/base/error.h"

// A kind that is not built in writes rows into memory of ours: before, between
// and behind them stand guards, and their ends are marked before it writes.
// A guard that changed was written beside a row; a mark that is still there was
// not written. Rows that are whole are copied to where they belong. Both are
// eight bytes again and again that no data has but by a chance of one in 2^64.

namespace penstock {
namespace {

constexpr std::size_t kGuard = 64, kMark = 8;
/// Behind the last guard, for who writes far too much.
constexpr std::size_t kTail = 4096;
/// Bytes of rows that are written at once.
constexpr std::size_t kAtOnce = std::size_t{256} << 10;

constexpr std::array<std::byte, 2 * kGuard> marks() {
  std::array<std::byte, 2 * kGuard> all{};
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<std::byte>(0x9e3779b97f4a7c15u >> i % 8 * 8);
  return all;
}
constexpr std::array<std::byte, 2 * kGuard> kMarks = marks();

void mark(std::span<std::byte> bytes) {
  std::copy_n(kMarks.begin(), bytes.size(), bytes.begin());
}
bool marked(std::span<const std::byte> bytes) {
  return std::equal(bytes.begin(), bytes.end(), kMarks.begin());
}
void copy(std::byte* to, std::span<const std::byte> from) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

[[noreturn]] void refuse(const std::string& code, const std::string& what,
                         const std::string& where, const std::string& why,
                         const std::string& next) {
  throw Error(
      ErrorKind::internal,
      {.code = code, .what = what, .where = where, .why = why, .next = next});
}

/// Memory for rows, with guards around each. Used again and again.
class GuardedRows {
 public:
  /// Room for rows of so many bytes, each at a multiple of `unit`.
  /// Gaps are whole units, at least kGuard bytes, so a row's place can be said
  /// in units, as its tensor is addressed. Only the two ends of a gap are
  /// marked and compared: an overrun of a few elements is at one of them.
  void lay_out(std::size_t unit, std::span<const std::size_t> bytes) {
    starts_.clear();
    ends_.clear();
    const std::size_t gap = (kGuard + unit - 1) / unit;
    std::size_t at = gap;
    for (std::size_t row : bytes) {
      starts_.push_back(static_cast<std::int64_t>(at));
      ends_.push_back(at * unit + row);
      at += (row + unit - 1) / unit + gap;
    }
    unit_ = unit;
    memory_.resize(at * unit + kTail);
    for (std::size_t row = 0; row <= ends_.size(); ++row)
      for (std::span<std::byte> guard : guards(row)) mark(guard);
  }

  std::byte* data() { return memory_.data(); }
  /// Where rows begin, in units.
  std::span<const std::int64_t> starts() const { return starts_; }
  std::span<std::byte> row(std::size_t at) {
    const std::size_t begin = static_cast<std::size_t>(starts_[at]) * unit_;
    return std::span(memory_).subspan(begin, ends_[at] - begin);
  }
  /// The guards before row `at` or, at the end, behind the last one.
  bool sound(std::size_t at) { return std::ranges::all_of(guards(at), marked); }

 private:
  /// The two ends of what lies between two rows.
  std::array<std::span<std::byte>, 2> guards(std::size_t row) {
    const std::size_t begin = row == 0 ? 0 : ends_[row - 1];
    const std::size_t end =
        row == ends_.size() ? memory_.size()
                            : static_cast<std::size_t>(starts_[row]) * unit_;
    const std::size_t bytes = std::min(end - begin, kGuard);
    const std::span<std::byte> all = memory_;
    if (end - begin <= 2 * kGuard) return {all.subspan(begin, end - begin), {}};
    return {all.subspan(begin, bytes), all.subspan(end - bytes, bytes)};
  }

  std::size_t unit_ = 1;
  std::vector<std::int64_t> starts_;
  std::vector<std::size_t> ends_;
  std::vector<std::byte> memory_;
};

/// The two ends of what is to be written, as far as they can be marked.
std::array<std::span<std::byte>, 2> ends_of(std::span<std::byte> written) {
  if (written.size() < kMark) return {};
  if (written.size() < 2 * kMark) return {written.last(kMark), {}};
  return {written.first(kMark), written.last(kMark)};
}
void mark_ends(std::span<std::byte> written) {
  for (std::span<std::byte> end : ends_of(written)) mark(end);
}
bool all_written(std::span<std::byte> written) {
  return std::ranges::none_of(ends_of(written), [](std::span<std::byte> end) {
    return !end.empty() && marked(end);
  });
}

/// What a kind wrote is compared with what it was given.
class Writing {
 public:
  Writing(std::string field, std::string step)
      : field_(std::move(field)), step_(std::move(step)) {}

  const std::string& field() const { return field_; }
  void check_guards(GuardedRows& rows, const std::string& tensor) const {
    for (std::size_t row = 0; row <= rows.starts().size(); ++row)
      if (!rows.sound(row))
        refuse_bytes(tensor,
                     row == 0 ? std::string("the kind wrote before row 0")
                              : "the kind wrote past the " +
                                    std::to_string(rows.row(row - 1).size()) +
                                    " bytes of row " + std::to_string(row - 1));
  }
  void check_written(std::span<std::byte> written, std::size_t row,
                     const std::string& tensor) const {
    if (!all_written(written))
      refuse_bytes(tensor, "the kind left bytes of row " + std::to_string(row) +
                               " unwritten, of " +
                               std::to_string(written.size()));
  }

 private:
  [[noreturn]] void refuse_bytes(const std::string& tensor,
                                 const std::string& why) const {
    refuse("transform.wrong_bytes", "a field kind wrote wrong bytes",
           "field '" + field_ + "', tensor '" + tensor + "'",
           why + ", expected it to write exactly the bytes of each row",
           "correct " + step_ +
               "() of the field kind, or report this error to the author of "
               "the kind");
  }
  const std::string field_, step_;
};

/// Calls `work` for one part of the rows after the other, whose bytes, as
/// `bytes_of` says, are few enough to be written at once.
void in_parts(
    std::size_t rows,
    const std::function<std::size_t(std::size_t row)>& bytes_of,
    const std::function<void(std::size_t first, std::size_t count)>& work) {
  for (std::size_t first = 0, end = 0; first < rows; first = end) {
    std::size_t bytes = 0;
    do {
      bytes += bytes_of(end++);
    } while (end < rows && bytes + bytes_of(end) <= kAtOnce);
    work(first, end - first);
  }
}

/// True where `faults`, which ascend, hold this row: `next` is the first that
/// may.
bool holds(std::span<const RowFault> faults, std::size_t& next,
           std::size_t row) {
  while (next < faults.size() &&
         faults[next].row < static_cast<std::int64_t>(row))
    ++next;
  return next < faults.size() &&
         faults[next].row == static_cast<std::int64_t>(row);
}

class CheckedEncoder final : public FieldEncoder {
 public:
  CheckedEncoder(const Field& field, std::unique_ptr<FieldEncoder> encoder)
      : writing_(field.name, "encode"), encoder_(std::move(encoder)) {
    layout_.append(field.kind->facts().stored.tensors);
  }

  void encode(std::span<const ValueRow> rows, const StoredRows& out,
              Faults& faults) override {
    if (layout_.row_bytes == 0) return encoder_->encode(rows, out, faults);
    in_parts(
        rows.size(), [&](std::size_t) { return layout_.row_bytes; },
        [&](std::size_t first, std::size_t count) {
          StoredRows part = out;
          part.data += first * out.stride;
          encode_part(rows.subspan(first, count), part);
          for (RowFault& fault : faults_.rows) {
            fault.row += static_cast<std::int64_t>(first);
            faults.reject(std::move(fault));
          }
        });
  }

 private:
  static constexpr std::size_t kUnit = 16;  // any element is aligned

  void encode_part(std::span<const ValueRow> rows, const StoredRows& out) {
    bytes_.assign(rows.size(), layout_.row_bytes);
    memory_.lay_out(kUnit, bytes_);
    for (std::size_t r = 0; r < rows.size(); ++r)
      for (const TensorSpec& tensor : layout_.tensors)
        mark_ends(tensor_of(tensor, r));
    const std::size_t stride =
        (rows.size() > 1 ? static_cast<std::size_t>(memory_.starts()[1] -
                                                    memory_.starts()[0])
                         : 0) *
        kUnit;
    faults_.rows.clear();
    encoder_->encode(
        rows,
        {.data = memory_.row(0).data(), .stride = stride, .runs = out.runs},
        faults_);
    check_rejected(faults_.rows, std::ssize(rows), writing_.field());
    writing_.check_guards(memory_, layout_.tensors[0].name);
    std::size_t next = 0;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const bool rejected = holds(faults_.rows, next, r);
      for (const TensorSpec& tensor : layout_.tensors) {
        const std::span<std::byte> made = tensor_of(tensor, r);
        if (!rejected) writing_.check_written(made, r, tensor.name);
        copy(out.data + r * out.stride + tensor.offset, made);
      }
    }
  }

  std::span<std::byte> tensor_of(const TensorSpec& tensor, std::size_t row) {
    return memory_.row(row).subspan(tensor.offset, tensor.bytes);
  }

  const Writing writing_;
  const std::unique_ptr<FieldEncoder> encoder_;
  RowLayout layout_;
  GuardedRows memory_;
  std::vector<std::size_t> bytes_;
  Faults faults_;
};

class CheckedFinisher final : public FieldFinisher {
 public:
  CheckedFinisher(const Field& field, std::unique_ptr<FieldFinisher> finisher)
      : writing_(field.name, "finish"),
        outputs_(field.kind->facts().outputs),
        finisher_(std::move(finisher)),
        memory_(outputs_.size()),
        bytes_(outputs_.size()) {}

  void finish(std::span<const StoredRow> rows, const DrawKey& key,
              std::span<const TensorPlace> to) override {
    rejected_.clear();
    in_parts(
        rows.size(),
        [&](std::size_t row) {
          std::size_t bytes = 0;
          for (const TensorPlace& place : to) bytes += bytes_of(place, row);
          return bytes;
        },
        [&](std::size_t first, std::size_t count) {
          finish_part(rows, key, to, first, count);
        });
  }
  std::span<const RowFault> rejected() const override { return rejected_; }
  void inspect(std::span<const StoredRow> rows) override {
    finisher_->inspect(rows);
    const std::span<const RowFault> found = finisher_->rejected();
    rejected_.assign(found.begin(), found.end());
  }
  std::optional<QueueNeeds> queue_needs(MemoryKind memory) const override {
    return finisher_->queue_needs(memory);
  }
  void queue(const QueuedRows& rows, Stream& stream) override {
    finisher_->queue(rows, stream);
  }

 private:
  static std::size_t bytes_of(const TensorPlace& place, std::size_t row) {
    return place.lengths.empty()
               ? place.bytes
               : static_cast<std::size_t>(place.lengths[row]) * place.bytes;
  }

  void finish_part(std::span<const StoredRow> rows, const DrawKey& key,
                   std::span<const TensorPlace> to, std::size_t first,
                   std::size_t count) {
    places_.clear();
    for (std::size_t o = 0; o < to.size(); ++o) {
      bytes_[o].clear();
      for (std::size_t r = 0; r < count; ++r)
        bytes_[o].push_back(bytes_of(to[o], first + r));
      memory_[o].lay_out(std::max<std::size_t>(to[o].bytes, 1), bytes_[o]);
      for (std::size_t r = 0; r < count; ++r) mark_ends(memory_[o].row(r));
      places_.push_back({.data = memory_[o].data(),
                         .bytes = to[o].bytes,
                         .starts = memory_[o].starts()});
      if (!to[o].lengths.empty())
        places_.back().lengths = to[o].lengths.subspan(first, count);
    }
    finisher_->finish(rows.subspan(first, count), key, places_);
    const std::span<const RowFault> found = finisher_->rejected();
    check_rejected(found, static_cast<std::int64_t>(count), writing_.field());
    for (std::size_t o = 0; o < to.size(); ++o) {
      writing_.check_guards(memory_[o], outputs_[o].name);
      std::size_t next = 0;
      for (std::size_t r = 0; r < count; ++r) {
        const std::span<std::byte> made = memory_[o].row(r);
        if (!holds(found, next, r))
          writing_.check_written(made, r, outputs_[o].name);
        copy(to[o].row(first + r), made);
      }
    }
    for (RowFault fault : found) {
      fault.row += static_cast<std::int64_t>(first);
      rejected_.push_back(std::move(fault));
    }
  }

  const Writing writing_;
  const std::vector<Output> outputs_;
  const std::unique_ptr<FieldFinisher> finisher_;
  // By output, and of these of each row.
  std::vector<GuardedRows> memory_;
  std::vector<std::vector<std::size_t>> bytes_;
  std::vector<TensorPlace> places_;
  std::vector<RowFault> rejected_;
};

bool varies(const Output& output) { return output.lengths != Lengths::equal; }

/// Why outputs are not the stored form, which is copied unchanged; empty: they
/// are.
std::string not_stored(const std::vector<Output>& outputs,
                       const StoredForm& stored) {
  const std::size_t tensors = stored.tensors.size(),
                    expected = tensors + (stored.element_bytes > 0 ? 1 : 0);
  if (outputs.size() != expected)
    return "the kind has no finisher and " + std::to_string(outputs.size()) +
           " outputs, expected the " + std::to_string(expected) +
           " that are stored";
  RowLayout layout;
  layout.append(stored.tensors);
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const bool run = o == tensors;
    if (varies(outputs[o]) != run)
      return "the kind has no finisher, and output '" + outputs[o].name +
             (run ? "', its run, is declared with equal lengths"
                  : "', a stored tensor, is declared with different lengths");
    const std::size_t bytes =
        run ? stored.element_bytes : layout.tensors[o].bytes;
    if (outputs[o].bytes() != bytes)
      return "the kind has no finisher, and output '" + outputs[o].name +
             "' has " + std::to_string(outputs[o].bytes()) + " bytes where " +
             std::to_string(bytes) + " are stored";
  }
  return {};
}

std::string wrong_form(const FieldKind& kind) {
  const std::vector<Output>& outputs = kind.facts().outputs;
  const StoredForm& stored = kind.facts().stored;
  if (outputs.empty()) return "the kind has no outputs";
  for (const Output& output : outputs) {
    if (varies(output) && stored.element_bytes == 0)
      return "output '" + output.name +
             "' differs in length, but no run is stored (element_bytes is 0)";
    if ((output.lengths == Lengths::bins) != kind.facts().packing.has_value())
      return "output '" + output.name +
             "' and packing() do not agree on whether its rows are bins";
  }
  for (bool train : {true, false})
    if (kind.finisher(train) == nullptr)
      if (std::string why = not_stored(outputs, stored); !why.empty())
        return why;
  return {};
}

}  // namespace

void check_declared(const Field& field) {
  const std::string why = wrong_form(*field.kind);
  if (!why.empty())
    refuse("transform.wrong_form",
           "the declarations of a field kind contradict each other",
           "field '" + field.name + "'", why,
           "correct its stored(), outputs() or finisher(), or report the error "
           "to its author");
}

void check_runs(const Values& values, std::int64_t before, std::int64_t rows,
                const std::string& field) {
  constexpr std::size_t kMostBytes = std::numeric_limits<std::uint32_t>::max();
  if (values.width == 0 && values.bytes.size() > kMostBytes)
    throw Error(
        ErrorKind::request,
        {.code = "fields.too_many_bytes",
         .what = "cannot hold these rows",
         .where = "field '" + field + "', " + std::to_string(rows) +
                  " rows of one reading",
         .why = "the rows have " + std::to_string(values.bytes.size()) +
                " bytes, expected at most 4 GiB",
         .next = "use a smaller \"loader.batch_size\", or shorter rows"});
  std::string why;
  if (values.rows() - before != rows)
    why = "the kind returned " + std::to_string(values.rows() - before) +
          " runs for " + std::to_string(rows) + " rows";
  else if (values.width != 0 && values.bytes.size() % values.width != 0)
    why = "the runs have " + std::to_string(values.bytes.size()) +
          " bytes, which is not a multiple of their width, " +
          std::to_string(values.width);
  else if (values.width == 0) {
    const auto first =
        values.ends.begin() + std::max<std::int64_t>(before - 1, 0);
    const std::size_t last = values.ends.empty() ? 0 : values.ends.back();
    if (!std::is_sorted(first, values.ends.end()))
      why = "a run ends before the previous one";
    else if (last != values.bytes.size())
      why = "the last run ends at byte " + std::to_string(last) + " of " +
            std::to_string(values.bytes.size());
  }
  if (!why.empty())
    refuse(
        "transform.wrong_runs",
        "a field kind returned something other than it declared",
        "field '" + field + "'", why,
        "correct its parse() or encode(), or report the error to its author");
}

std::unique_ptr<FieldEncoder> checked_encoder(const Field& field,
                                              const BoundField& bound,
                                              const Json& statistics) {
  auto encoder = bound.encoder(statistics, "statistics." + field.name);
  if (field.kind->facts().built_in) return encoder;
  return std::make_unique<CheckedEncoder>(field, std::move(encoder));
}

std::unique_ptr<FieldFinisher> checked_finisher(const Field& field,
                                                bool train) {
  auto finisher = field.kind->finisher(train);
  if (finisher == nullptr || field.kind->facts().built_in) return finisher;
  return std::make_unique<CheckedFinisher>(field, std::move(finisher));
}

}  // namespace penstock
