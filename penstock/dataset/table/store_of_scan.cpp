#include "penstock/dataset/table/store_of_scan.h"

#include <utility>

#include "penstock/base/temporary.h"

// A scan that ends in a store would else write the values of all rows, read
// them again, and write them once more, when the other processors have nothing
// left to do. One thread at a time writes, without the lock: the others leave
// what they have scanned with it, and go on.

namespace penstock {

void begin_rows(StoreWriter& store, bool runs_alone) {
  store.begin("rows");
  if (runs_alone) store.begin("runs/0");
}

StoreOfScan::StoreOfScan(FileSystem& files, const std::filesystem::path& path,
                         RowEncoder encoder, std::size_t element_bytes)
    : encoder_(std::move(encoder)),
      lengths_(std::make_shared<RunTable>(element_bytes, false)),
      runs_(1) {
  files.make_folders(path.parent_path(), Readers::owner);
  remove_leftovers(path);
  writer_ = std::make_unique<StoreWriter>(files, path);
  begin_rows(*writer_, true);
}

StoreOfScan::~StoreOfScan() = default;

void StoreOfScan::add(std::int64_t partition, ScannedPart part,
                      const Written& written) {
  {
    Lock lock(mutex_);
    waiting_.emplace(partition, std::move(part));
    if (std::exchange(writes_, true)) return;
  }
  for (;;) {
    ScannedPart next;
    {
      Lock lock(mutex_);
      auto found = waiting_.find(next_);
      if (found == waiting_.end()) {
        writes_ = false;
        return;
      }
      next = std::move(found->second);
      waiting_.erase(found);
      ++next_;
    }
    write(next);
    written(std::move(next));
  }
}

void StoreOfScan::write(const ScannedPart& part) {
  Values& runs = runs_.front();
  for (const ParsedBlock& block : part.blocks) {
    runs.clear();
    encoder_.encode(block, nullptr, runs_);
    writer_->append(runs.bytes.span());
    for (std::int64_t row = 0; row < runs.rows(); ++row)
      lengths_->append(runs.row(row));
  }
}

}  // namespace penstock
