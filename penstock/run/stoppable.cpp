#include "penstock/run/stoppable.h"

#include <utility>

namespace penstock {
namespace {

constexpr const char* kCode = "run.stopped";

class StoppableReader final : public Reader {
 public:
  StoppableReader(std::unique_ptr<Reader> reader, const std::atomic<bool>* stop)
      : reader_(std::move(reader)), stop_(stop) {}

  void scan(const Partition& partition, std::int64_t block_rows,
            const std::function<bool(Block&)>& sink) override {
    reader_->scan(partition, block_rows, [&](Block& block) {
      end_if_stopped(stop_);
      return sink(block);
    });
  }
  void read(const KeyList& keys, Block& out) override {
    end_if_stopped(stop_);
    reader_->read(keys, out);
  }

 private:
  std::unique_ptr<Reader> reader_;
  const std::atomic<bool>* stop_;
};

class StoppableSource final : public Source {
 public:
  StoppableSource(std::unique_ptr<Source> source, const std::atomic<bool>* stop)
      : source_(std::move(source)), stop_(stop) {}

  const Schema& schema() const override { return source_->schema(); }
  std::vector<ColumnType> types() const override { return source_->types(); }
  std::optional<std::int64_t> estimated_rows() const override {
    return source_->estimated_rows();
  }
  std::vector<Partition> partitions(int wish) override {
    return source_->partitions(wish);
  }
  std::unique_ptr<Reader> open_reader() override {
    return std::make_unique<StoppableReader>(source_->open_reader(), stop_);
  }
  std::string shown() const override { return source_->shown(); }

 private:
  std::unique_ptr<Source> source_;
  const std::atomic<bool>* stop_;
};

}  // namespace

std::unique_ptr<Source> stoppable(std::unique_ptr<Source> source,
                                  const std::atomic<bool>* stop) {
  if (stop == nullptr) return source;
  return std::make_unique<StoppableSource>(std::move(source), stop);
}

void end_if_stopped(const std::atomic<bool>* stop) {
  if (stop == nullptr || !stop->load()) return;
  throw Error(ErrorKind::request, {.code = kCode,
                                   .what = "stopped as asked",
                                   .where = "the run",
                                   .why = "a signal came",
                                   .next = "go on with --resume"});
}

bool is_stop(const Error& error) { return error.parts().code == kCode; }

}  // namespace penstock
