#include "python/engine/object_texts.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "penstock/base/hash.h"
#include "python/engine/gil.h"

// Rows mostly share their objects: a value that comes again is the object that
// came before. So an object is looked up by its address, and only one that was
// not there lately by its text. Neither is copied, nor is its count of
// references touched.

namespace nb = nanobind;

namespace penstock::python {
namespace {

/// The addresses of objects; those who give them keep the objects.
using Objects =
    nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::device::cpu, nb::ro>;
using Codes =
    nb::ndarray<std::int16_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr std::int16_t kMissing = -1;
constexpr std::int64_t kPiece = 1 << 16;  // rows between two turns of others

/// Numbers texts in the order in which they come first.
class TextNumbers {
 public:
  explicit TextNumbers(std::size_t most)
      : most_(most), slots_(std::bit_ceil(2 * most + 2)) {}

  /// nullopt: there are more than `most`.
  std::optional<std::int16_t> number_of(std::string_view text) {
    const std::uint64_t hash = hash64(text);
    std::size_t at = hash & (slots_.size() - 1);
    for (; slots_[at].number >= 0; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].hash == hash && texts_[at_of(slots_[at])] == text)
        return slots_[at].number;
    if (texts_.size() == most_) return std::nullopt;
    slots_[at] = {hash, static_cast<std::int16_t>(texts_.size())};
    texts_.emplace_back(text);
    return slots_[at].number;
  }
  const std::vector<std::string>& texts() const { return texts_; }
  /// From now on the numbers of those that are there are in the order of their
  /// bytes. Gives the new number of each; empty: they were.
  std::vector<std::int16_t> sort() {
    if (std::ranges::is_sorted(texts_)) return {};
    std::vector<std::string> before = std::move(texts_);
    texts_ = before;
    std::ranges::sort(texts_);
    std::vector<std::int16_t> now;
    for (const std::string& text : before)
      now.push_back(static_cast<std::int16_t>(
          std::ranges::lower_bound(texts_, text) - texts_.begin()));
    for (Slot& slot : slots_)
      if (slot.number >= 0) slot.number = now[at_of(slot)];
    return now;
  }

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::int16_t number = -1;
  };
  static std::size_t at_of(const Slot& slot) {
    return static_cast<std::size_t>(slot.number);
  }

  const std::size_t most_;
  std::vector<Slot> slots_;
  std::vector<std::string> texts_;
};

/// One walk over objects. With Python's lock.
class Walk {
 public:
  Walk(const Objects& objects, const std::vector<nb::object>& missing,
       const Codes& codes, std::size_t most)
      : objects_(objects), missing_(missing), codes_(codes), numbers_(most) {}

  /// False: an object is neither a text nor missing. Else the codes are in the
  /// order of the texts.
  bool all() {
    const auto rows = static_cast<std::int64_t>(objects_.shape(0));
    for (std::int64_t begin = 0; begin < rows; begin += kPiece) {
      const std::int64_t end = std::min(rows, begin + kPiece);
      if (begin > 0) let_others_run();
      // An address may be another object's after their turn.
      seen_.fill({});
      if (!piece(begin, end)) return false;
      // Mostly the first rows have all texts: then no later code changes.
      if (begin == 0 || end == rows) sort(end);
    }
    return true;
  }
  bool too_many() const { return too_many_; }
  std::int64_t missing_rows() const { return missing_rows_; }
  const std::vector<std::string>& texts() const { return numbers_.texts(); }

 private:
  static constexpr int kPlaceBits = 12;
  /// An object that was there lately; numpy has null for None.
  struct Seen {
    PyObject* object = nullptr;
    std::int16_t code = kMissing;
  };

  static std::size_t place_of(std::uint64_t address) {
    return (address * 0x9e3779b97f4a7c15u) >> (64 - kPlaceBits);
  }
  static void let_others_run() {
    { GilRelease meanwhile; }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }

  bool piece(std::int64_t begin, std::int64_t end) {
    const std::int64_t stride = objects_.stride(0);
    const std::uint64_t* from = objects_.data() + begin * stride;
    std::int16_t* to = codes_.data() + begin;
    std::int64_t missing = 0;
    for (std::int64_t row = begin; row < end; ++row, from += stride, ++to) {
      auto* object = reinterpret_cast<PyObject*>(*from);
      Seen& seen = seen_[place_of(*from)];
      if (seen.object != object) {
        const std::optional<std::int16_t> code = code_of(object);
        if (!code) return false;
        seen = {object, *code};
      }
      *to = seen.code;
      missing += seen.code == kMissing ? 1 : 0;
    }
    missing_rows_ += missing;
    return true;
  }

  void sort(std::int64_t rows) {
    if (too_many_) return;
    const std::vector<std::int16_t> now = numbers_.sort();
    if (now.empty()) return;
    std::int16_t* codes = codes_.data();
    for (std::int64_t row = 0; row < rows; ++row)
      if (codes[row] != kMissing)
        codes[row] = now[static_cast<std::size_t>(codes[row])];
  }

  /// nullopt: neither a text nor missing, or a text that UTF-8 cannot write.
  std::optional<std::int16_t> code_of(PyObject* object) {
    if (PyUnicode_CheckExact(object)) {
      if (too_many_) return 0;
      Py_ssize_t size = 0;
      const char* text = PyUnicode_AsUTF8AndSize(object, &size);
      if (text == nullptr) {
        PyErr_Clear();
        return std::nullopt;
      }
      const auto number =
          numbers_.number_of({text, static_cast<std::size_t>(size)});
      too_many_ = !number;
      return number.value_or(0);
    }
    const bool missing =
        object == nullptr || object == Py_None ||
        (PyFloat_Check(object) && std::isnan(PyFloat_AsDouble(object))) ||
        std::ranges::any_of(missing_, [&](const nb::object& one) {
          return one.ptr() == object;
        });
    return missing ? std::optional(kMissing) : std::nullopt;
  }

  const Objects& objects_;
  const std::vector<nb::object>& missing_;
  const Codes& codes_;
  TextNumbers numbers_;
  std::array<Seen, std::size_t{1} << kPlaceBits> seen_;
  std::int64_t missing_rows_ = 0;
  bool too_many_ = false;
};

/// The texts, null where they are too many, and how many rows have none.
using Found = std::tuple<std::optional<std::vector<std::string>>, std::int64_t>;

std::optional<Found> text_codes(const Objects& objects,
                                const std::vector<nb::object>& missing,
                                const Codes& codes, std::size_t most) {
  if (codes.shape(0) != objects.shape(0) ||
      most > static_cast<std::size_t>(INT16_MAX))
    throw nb::value_error("there is a code for each object, of 16 bits");
  Walk walk(objects, missing, codes, most);
  if (!walk.all()) return std::nullopt;
  if (walk.too_many()) return Found(std::nullopt, walk.missing_rows());
  return Found(walk.texts(), walk.missing_rows());
}

}  // namespace

void bind_object_texts(nb::module_& module) {
  module.def("text_codes", &text_codes, nb::arg("objects"), nb::arg("missing"),
             nb::arg("codes"), nb::arg("most"),
             "Texts that objects are, sorted, and the code of each object in "
             "`codes`; -1: the object is not a text. None: some objects are "
             "not texts.");
}

}  // namespace penstock::python
