#include "penstock/sources/joined.h"

#include <algorithm>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/name_index.h"

namespace penstock {
namespace {

[[noreturn]] void refuse(const Source& left, const Source& right,
                         std::string why, std::string next) {
  throw Error(ErrorKind::request, {.code = "source.cannot_join",
                                   .what = "cannot join two sources",
                                   .where = left.shown() + ", " + right.shown(),
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

void check_keys(const Source& left, const Source& right) {
  if (left.facts().key != right.facts().key)
    refuse(left, right,
           "the keys of the first are " +
               std::string(name_of(left.facts().key)) +
               ", but those of the second are " +
               std::string(name_of(right.facts().key)),
           "name columns of one type as source.key");
}

void check_positions(const Source& left, const Source& right) {
  if (!left.abilities().by_position || !right.abilities().by_position)
    refuse(left, right, "one source has no keys and the other no positions",
           "name a column whose values are unique as source.key");
  std::int64_t rows = left.count().rows.value_or(-1);
  std::int64_t others = right.count().rows.value_or(-1);
  if (rows != others)
    refuse(left, right,
           "the first has " + std::to_string(rows) +
               " rows, but the second has " + std::to_string(others),
           "without keys, rows are matched by position");
}

std::vector<JoinedColumn> all_of(const Source& left, const Source& right) {
  std::vector<JoinedColumn> columns;
  for (std::size_t c = 0; c < left.types().size(); ++c)
    columns.push_back({false, c});
  for (std::size_t c = 0; c < right.types().size(); ++c)
    columns.push_back({true, c});
  return columns;
}

SourceFacts facts_of(const Source& left, const Source& right,
                     const std::vector<JoinedColumn>& columns) {
  SourceFacts facts = left.facts();
  facts.shown += " joined with " + right.shown();
  const NameIndex names(left.schema().columns, &ColumnInfo::name);
  for (const ColumnInfo& column : right.schema().columns) {
    if (names.find(column.name)) continue;
    facts.schema.columns.push_back(column);
    facts.schema.columns.back().primary_key = false;
  }
  facts.types.clear();
  for (const JoinedColumn& column : columns)
    facts.types.push_back(
        (column.right ? right : left).types().at(column.request));
  facts.abilities.by_key = left.abilities().by_key && right.abilities().by_key;
  facts.abilities.by_position = !facts.abilities.by_key;
  facts.abilities.global_lock |= right.abilities().global_lock;
  facts.identity = Json(Json::Object{});
  facts.identity["kind"] = "joined";
  facts.identity["left"] = left.identity();
  facts.identity["right"] = right.identity();
  return facts;
}

struct Both {
  std::unique_ptr<Source> left, right;
  std::vector<JoinedColumn> columns;
  bool by_key = false;
};

/// Rows from..to of a block.
Block cut(const Block& block, std::int64_t from, std::int64_t to) {
  Block piece;
  piece.rows = to - from;
  for (const Column& column : block.columns) {
    Column& copy = piece.columns.emplace_back();
    copy.type = column.type;
    for (std::int64_t row = from; row < to; ++row)
      copy.append_from(column, row);
  }
  for (const RowProblem& problem : block.problems)
    if (problem.row >= from && problem.row < to)
      piece.problems.push_back(
          {problem.row - from, problem.column, problem.why});
  return piece;
}

/// With the columns of the other source a block may have become too large.
bool hand_on(KeyList& keys, Block& block, BlockLimit limit,
             const BlockSink& sink) {
  if (block.bytes() <= limit.bytes || block.rows < 2) return sink(keys, block);
  const std::int64_t half = block.rows / 2;
  for (std::int64_t from : {std::int64_t{0}, half}) {
    std::int64_t to = from == 0 ? half : block.rows;
    KeyList some(keys.type());
    for (std::int64_t row = from; row < to; ++row) some.append(keys, row);
    Block piece = cut(block, from, to);
    if (!hand_on(some, piece, limit, sink)) return false;
  }
  return true;
}

// The left source decides which rows there are and their order; for each block
// of it the right one is asked for the same keys (or positions) in one request.
// So a scan costs one scan of the left source and as many keyed reads of the
// right one as there are blocks.
class JoinedReader final : public Reader {
 public:
  explicit JoinedReader(std::shared_ptr<const Both> both)
      : both_(std::move(both)),
        left_(both_->left->open_reader()),
        right_(both_->right->open_reader()) {}

  void scan(const Partition& partition, BlockLimit limit,
            const BlockSink& sink) override {
    if (!both_->by_key) return Reader::scan(partition, limit, sink);
    left_->scan(partition, limit, [&](KeyList& keys, Block& block) {
      Block out;
      join(block, ReadRequest(keys), out);
      return hand_on(keys, out, limit, sink);
    });
  }

  void read(const ReadRequest& request, Block& out) override {
    Block found;
    left_->read(request, found);
    ReadRequest same = request;
    same.gone = nullptr;
    join(found, same, out);
  }

 private:
  /// Takes the columns of `found`, and those of the right source for the same
  /// rows. Blocks may borrow from what they came from, so the result keeps both
  /// owners. A row that the right source lacks has nulls there and one problem,
  /// in the first of the right source's columns that was requested.
  void join(Block& found, ReadRequest rows, Block& out) {
    std::vector<std::int64_t> gone;
    if (both_->by_key) rows.gone = &gone;
    Block other;
    right_->read(rows, other);
    out = Block();
    out.rows = found.rows;
    std::size_t of_right = both_->columns.size();  // one of its columns
    for (std::size_t c = 0; c < both_->columns.size(); ++c) {
      const JoinedColumn& column = both_->columns[c];
      Block& from = column.right ? other : found;
      out.columns.push_back(std::move(from.columns[column.request]));
      if (column.right) of_right = std::min(of_right, c);
      for (RowProblem& problem : from.problems)
        if (problem.column == column.request)
          out.problems.push_back({problem.row, c, std::move(problem.why)});
    }
    if (of_right == both_->columns.size()) of_right = 0;  // all of the left
    if (!out.columns.empty())
      for (std::int64_t row : gone)
        out.problems.push_back({row, of_right,
                                "has no row with " + rows.shown(row) + " in " +
                                    both_->right->shown()});
    std::ranges::stable_sort(out.problems, {}, &RowProblem::row);
    out.owner = std::make_shared<
        std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>>(
        std::move(found.owner), std::move(other.owner));
  }

  const std::shared_ptr<const Both> both_;
  const std::unique_ptr<Reader> left_, right_;
};

class Joined final : public Source {
 public:
  explicit Joined(std::shared_ptr<const Both> both)
      : Source(facts_of(*both->left, *both->right, both->columns)),
        both_(std::move(both)) {}

  std::string version_of_copy() const override {
    return both_->left->version_of_copy() + both_->right->version_of_copy();
  }
  RowCount count() const override { return both_->left->count(); }
  std::vector<Partition> partitions(int readers) override {
    return both_->by_key ? both_->left->partitions(readers)
                         : Source::partitions(readers);
  }
  std::string place_of(std::int64_t position) const override {
    return both_->left->place_of(position);
  }
  bool lengths(std::size_t request, std::int64_t first,
               std::span<std::int32_t> out) const override {
    const JoinedColumn& column = both_->columns[request];
    const Source& source = column.right ? *both_->right : *both_->left;
    return source.lengths(column.request, first, out);
  }
  std::unique_ptr<Reader> open_reader() override {
    return std::make_unique<JoinedReader>(both_);
  }

 private:
  const std::shared_ptr<const Both> both_;
};

}  // namespace

std::unique_ptr<Source> joined(std::unique_ptr<Source> left,
                               std::unique_ptr<Source> right,
                               std::vector<JoinedColumn> columns) {
  auto both = std::make_shared<Both>();
  both->by_key = left->abilities().by_key && right->abilities().by_key;
  if (both->by_key)
    check_keys(*left, *right);
  else
    check_positions(*left, *right);
  both->columns = columns.empty() ? all_of(*left, *right) : std::move(columns);
  both->left = std::move(left);
  both->right = std::move(right);
  return std::make_unique<Joined>(std::move(both));
}

}  // namespace penstock
