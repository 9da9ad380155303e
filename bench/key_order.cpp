// How long does it take to put rows into the order of their keys?
//
// Random keys in blocks of 1,024, as they arrive from a source: compared where
// they are (one thread, std::sort), and sorted by parts of them. Both give the
// same order. By the wall, so give the machine a quiet moment.
//
//     bench_key_order [ROWS [REPEATS [THREADS]]]
#include "penstock/dataset/table/key_order.h"

#include <algorithm>

#include "bench/measure.h"
#include "penstock/base/base.h"

namespace penstock {
namespace {

struct Workload {
  const char* name;
  ColumnType type;
  const char* beginning;  ///< of each text
};

const Workload kWorkloads[] = {
    {"text, 16 random letters", ColumnType::text, ""},
    {"text, the same 40 bytes, then 16 random letters", ColumnType::text,
     "s3://bucket/recordings/2026/11/22/part-0"},
    {"uuid", ColumnType::uuid, ""},
    {"int64", ColumnType::int64, ""},
};

std::vector<ParsedBlock> blocks_of(const Workload& work, std::int64_t rows) {
  constexpr std::int64_t kBlockRows = 1024;
  std::vector<ParsedBlock> blocks;
  Random random(1, 0, 0, 0);
  for (std::int64_t row = 0; row < rows; ++row) {
    if (row % kBlockRows == 0) blocks.emplace_back().keys = KeyList(work.type);
    Column key{.type = work.type};
    if (work.type == ColumnType::int64) {
      key.append_int64(static_cast<std::int64_t>(random.next()));
    } else if (work.type == ColumnType::uuid) {
      key.values.append_value(random.next());
      key.values.append_value(random.next());
    } else {
      std::string text = work.beginning;
      for (int i = 0; i < 16; ++i)
        text += static_cast<char>('a' + random.below(26));
      key.append_text(text);
    }
    blocks.back().keys.append(key, 0);
    blocks.back().hashes.push_back(0);
  }
  return blocks;
}

std::vector<RowRef> compared_in_place(const std::vector<ParsedBlock>& blocks) {
  bool integers = blocks[0].keys.type() == ColumnType::int64;
  auto less = [&](const RowRef& a, const RowRef& b) {
    const KeyList& x = blocks[a.block].keys;
    const KeyList& y = blocks[b.block].keys;
    if (integers) return x.integer(a.row) < y.integer(b.row);
    return x.bytes(a.row) < y.bytes(b.row);
  };
  std::vector<RowRef> refs;
  for (std::uint32_t b = 0; b < blocks.size(); ++b)
    for (std::uint32_t r = 0; r < blocks[b].rows(); ++r) refs.push_back({b, r});
  if (!std::ranges::is_sorted(refs, less)) std::ranges::sort(refs, less);
  for (std::size_t i = 1; i < refs.size(); ++i)
    PENSTOCK_ASSERT(less(refs[i - 1], refs[i]), "no key comes twice");
  return refs;
}

Json measured(const Workload& work, std::int64_t rows, int repeats,
              int threads) {
  std::vector<ParsedBlock> blocks = blocks_of(work, rows);
  PENSTOCK_ASSERT(
      compared_in_place(blocks) == rows_by_key(blocks, "bench", threads),
      "both find the same order");
  // Of the processor too: where others use it, the wall tells less.
  Repeats cpu[2];
  std::vector<Repeats> seconds = in_turns(
      repeats,
      {[&] {
         return wall_seconds([&] {
           cpu[0].add(cpu_seconds([&] { compared_in_place(blocks); }));
         });
       },
       [&] {
         return wall_seconds([&] {
           cpu[1].add(cpu_seconds([&] { rows_by_key(blocks, "bench", 1); }));
         });
       },
       [&] {
         return wall_seconds([&] { rows_by_key(blocks, "bench", threads); });
       }});
  Json result;
  result["keys"] = work.name;
  result["seconds_compared_in_place"] = seconds[0].json();
  result["seconds_by_parts_one_thread"] = seconds[1].json();
  result["seconds_by_parts"] = seconds[2].json();
  result["times_as_fast"] = seconds[0].median() / seconds[2].median();
  result["cpu_seconds_compared_in_place"] = cpu[0].json();
  result["cpu_seconds_by_parts_one_thread"] = cpu[1].json();
  result["times_as_fast_on_one_thread"] = cpu[0].median() / cpu[1].median();
  if (work.type == ColumnType::text) result["must_reach"] = "5 times as fast";
  return result;
}

}  // namespace
}  // namespace penstock

int main(int count, char** arguments) {
  using namespace penstock;
  std::int64_t rows = argument(count, arguments, 1, 2'000'000);
  auto repeats = static_cast<int>(argument(count, arguments, 2, 5));
  auto threads = static_cast<int>(argument(count, arguments, 3, 2));
  Json result =
      result_of("key_order",
                "How long does it take to put rows into the order of their "
                "keys?",
                count, arguments);
  result["rows"] = rows;
  result["threads"] = threads;
  for (const Workload& work : kWorkloads)
    result["results"].push_back(measured(work, rows, repeats, threads));
  return finish(result);
}
