#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/columns.h"
#include "penstock/base/json.h"
#include "penstock/base/tensor.h"
#include "penstock/transforms/missing_value.h"

namespace penstock {

class FieldKind;

/// One tensor of a batch, seen per row.
struct TensorSpec {
  std::string name;
  Dtype dtype = Dtype::float32;
  Shape row_shape;         ///< without the batch dimension
  std::size_t offset = 0;  ///< of its bytes in a stored row
  std::size_t bytes = 0;   ///< per row
};

/// How a stored row looks: its tensors one after the other, each at a multiple
/// of its element size.
struct RowLayout {
  std::vector<TensorSpec> tensors;
  std::size_t row_bytes = 0;  ///< of a table's rows a multiple of 8

  /// Adds a group of tensors, one field's; sets their offset and bytes.
  void append(std::vector<TensorSpec> more);
  /// Makes a row's bytes a multiple of `bytes`.
  void round_up(std::size_t bytes) {
    row_bytes = (row_bytes + bytes - 1) / bytes * bytes;
  }
};

/// How the samples of a batch are arranged where they differ in length.
enum class Lengths : std::uint8_t {
  equal,   ///< they do not: [rows, ...]
  padded,  ///< [rows, longest, ...], zeros after each row's last element
  packed,  ///< [elements of all rows, ...], one after the other
  /// [rows, size, ...]: each row is a bin that samples and padding fill, as the
  /// field's Packing says, beside the offsets of all of them
  bins,
};

/// How a field puts its samples into bins, which then are the rows of batches.
struct Packing {
  enum class How : std::uint8_t {
    best_fit,  ///< each where the least room is left, the longest first
    wrapped,   ///< one after the other, cut where a bin ends
    /// Best fit in windows, one behind the other and without an end: lengths
    /// are needed window by window.
    stream,
  };
  How how = How::best_fit;
  std::int32_t size = 0;  ///< elements of a bin
  bool repack = false;    ///< other bins in every epoch
  /// Samples that are packed together; 0: all, but of a stream.
  std::int64_t window = 0;
  /// The finisher also writes the padding of bins: it then gets rows of sample
  /// -1, without a run, whose `lengths` in their places are not 0.
  bool pads = false;
};

/// What a field puts into a batch: a tensor, seen per sample.
struct Output {
  std::string name;
  Dtype dtype = Dtype::float32;
  Shape row_shape;  ///< of a sample; of one element where lengths differ
  Lengths lengths = Lengths::equal;
  /// Where lengths differ: the name of the tensor that says them; empty:
  /// NAME_lengths, or NAME_cu_seqlens.
  std::string beside = {};
  /// It has the lengths of the output before it, and none beside it.
  bool shares = false;
  std::int64_t padding = 0;  ///< what stands where no sample does, an integer
  /// Where lengths differ: the elements that a sample has at most; 0: nobody
  /// knows before it is parsed.
  std::int32_t most = 0;

  /// The lengths of a run of the stored form: one of each group that shares.
  bool own_lengths() const { return lengths != Lengths::equal && !shares; }
  /// Of a sample, or of one element.
  std::size_t bytes() const {
    return static_cast<std::size_t>(elements_of(row_shape)) * size_of(dtype);
  }
};

/// The tensors of a layout as they stand in a batch.
std::vector<Output> outputs_of(const RowLayout& layout);

/// What is kept of a sample: tensors of equal size, and a run of elements where
/// samples differ in length.
struct StoredForm {
  std::vector<TensorSpec> tensors = {};
  std::size_t element_bytes = 0;  ///< of the run; 0: none
  /// What of a run the host sees where a device finishes it: these first bytes,
  std::size_t head_bytes = 0;
  /// and all of a run of so many bytes or fewer, which may be one that is
  /// rejected. It takes the room of the longest one, which may come in its
  /// place.
  std::size_t most_rejected = 0;
  /// All of the run instead, where it is kept: nothing of it is copied to the
  /// device.
  bool read_by_host = false;

  std::size_t seen_of(std::size_t run_bytes) const {
    return run_bytes <= most_rejected ? run_bytes : head_bytes;
  }
};

/// What the stages of a loader mostly do for a field, as a user would call it.
struct FieldWork {
  /// Parsing its column, as a verb: "tokenize"; empty: nothing beyond parsing.
  std::string parsing = {};
  /// Putting a row into a batch: "decode"; empty: nothing beyond copying.
  std::string making = {};
  /// Where other settings of the field would spare some of that work: which
  /// ones, as half a sentence; empty: none.
  std::string cheaper = {};
};

/// Of a field whose rows have classes. Which ones there are only its statistics
/// say: class_names().
struct ClassFacts {
  bool many = false;     ///< a row has any number of them; else one
  bool unknown = false;  ///< one more, the last, is that of all other values
  bool one_hot = false;  ///< a place for each class, in place of its number
};

/// Of a field whose rows are tokens for a language model.
struct TokenFacts {
  std::string column = {};      ///< of the texts, or of the tokens
  bool tokenized = false;       ///< a tokenizer makes them of texts
  bool labelled = false;        ///< a column says which of them are targets
  std::int32_t max_length = 0;  ///< of a row of a batch
  std::int64_t vocab_size = 0;  ///< ids are below it; 0: not known
};

/// Of a field of columns with one number each.
struct NumberFacts {
  std::vector<std::string> columns = {};
  Dtype dtype = Dtype::float32;  ///< of the numbers; buckets are int64
  MissingValue::By missing = MissingValue::By::bad;
  bool bucketized = false;  ///< buckets stand in place of the numbers
  bool quantiles = false;   ///< or their places among those of the train rows
};

/// Of a field whose rows are sets of elements, with the same numbers each.
struct SetFacts {
  std::vector<std::string> keys = {};  ///< of these numbers
  std::int64_t least = 0;              ///< elements of a row
};

/// A folder where relative paths begin that a column holds.
struct FolderFacts {
  std::string path = {};
  std::string setting = {};      ///< that says it: "fields.x.image.folder"
  std::string source_kind = {};  ///< of a source that lists such a folder
};

/// Another form of a field, which keeps more of each row and finishes it with
/// less work.
struct LargerKind {
  std::shared_ptr<const FieldKind> kind = {};  ///< of the same parsed values
  std::string setting = {};                    ///< that makes it, as in a job
  bool same_bytes = true;                      ///< in batches
};

/// What a field is, for all who plan with it, learn from it or tell of it.
struct FieldFacts {
  /// The columns that it reads.
  std::vector<ColumnRequest> columns = {};
  /// What is kept of a sample: always the same, whatever the columns hold.
  StoredForm stored = {};
  /// Elements of the first column (bytes, of text and binary) that make one of
  /// the stored run; 0: only parsing shows how long that is.
  std::int64_t column_elements = 0;
  /// What comes into a batch. The first has the field's name, others begin with
  /// it, but for names that the kind says. Where there is no finisher they are
  /// the stored tensors in their order, and then the run, whose range is
  /// copied. Left empty they are the stored tensors.
  std::vector<Output> outputs = {};
  /// How its samples are put into bins; nullopt: they are not. The outputs of
  /// such a field, and of no other, are Lengths::bins.
  std::optional<Packing> packing = {};
  /// Whether it shall be finished on the device: what is planned then says
  /// where it is.
  bool wants_device = false;
  FieldWork work = {};
  /// Everything that decides the bytes of a batch, defaults filled in: what two
  /// fields must share to be the same. It is compared, hashed and shown as a
  /// whole; what is to be known of a field is a fact of its own.
  Json recipe = Json();
  /// Of these, what decides the stored form: a store is named by it. Left null
  /// it is all of them.
  Json stored_recipe = Json();
  /// A kind of this repository. Its tests hold it to all that FieldKind says
  /// (tests/conformance/field_kind_suite.h), so that what it writes is not
  /// checked while it runs, as that of other kinds is (checked_kind.h).
  bool built_in = false;

  /// What a setting that gives up exactness costs, behind that setting; empty:
  /// none does.
  std::string costs = {};
  std::optional<LargerKind> larger = {};
  bool is_larger = false;  ///< it has that form already

  std::optional<ClassFacts> classes = {};
  std::optional<TokenFacts> tokens = {};
  std::optional<NumberFacts> numbers = {};
  std::optional<SetFacts> set = {};
  std::optional<FolderFacts> folder = {};

  /// Each row has one class.
  bool one_class() const { return classes && !classes->many; }
};

}  // namespace penstock
