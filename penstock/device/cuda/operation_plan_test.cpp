#include "penstock/device/cuda/operation_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "penstock/base/random.h"
#include "penstock/device/cuda/resize_plan.h"
#include "tests/conformance/drawn_operations.h"

namespace penstock::cuda {
namespace {

using conformance::DrawnOperation;

/// All threads of all blocks, in an order that nobody may count on.
template <class Run>
void run_threads(std::uint32_t blocks, Random& random, Run run) {
  std::vector<std::uint32_t> threads(kBlockThreads);
  std::iota(threads.begin(), threads.end(), 0u);
  for (std::size_t i = threads.size(); i > 1; --i)
    std::swap(threads[i - 1], threads[random.below(i)]);
  for (std::uint32_t block = blocks; block-- > 0;)
    for (std::uint32_t thread : threads) run(block, thread);
}

/// What the stream does with an operation, on the host.
struct ByLaunches {
  Random& random;
  std::size_t most;  // windows and boxes of a launch

  void operator()(const CastNormalize& cast) const {
    const CastLaunch launch = plan_cast(cast);
    run_threads(launch.blocks, random, [&](auto block, auto thread) {
      cast_elements(launch.work, block, thread);
    });
  }
  void operator()(const CropFlip& crop) const {
    for (std::size_t first = 0; first < crop.windows.size(); first += most) {
      const auto windows = crop.windows.subspan(
          first, std::min(most, crop.windows.size() - first));
      std::vector<WorkWindow> staged;
      for (const CropWindow& window : windows)
        staged.push_back(work_of(window));
      const CropLaunch launch = plan_crop(crop, first, windows, staged.data());
      run_threads(launch.blocks, random, [&](auto block, auto thread) {
        const CropWork& work = launch.work;
        crop_elements(work, work.windows[block / work.row_blocks], block,
                      thread);
      });
    }
  }
  void operator()(const Resize& resize) const {
    const std::size_t bytes =
        resize.numbers.size() + most * 40 * sizeof(std::int32_t);
    for (std::size_t first = 0; first < resize.windows.size();) {
      const ResizePart part = next_part(resize, first, bytes);
      first += part.windows.size();
      std::vector<std::uint64_t> staged(part.bytes / 8 + 1);
      auto* at = reinterpret_cast<std::byte*>(staged.data());
      stage(resize, part, at);
      const ResizeLaunch launch = plan_resize(resize, part, at);
      run_threads(launch.blocks, random, [&](auto block, auto thread) {
        const ResizeWork& work = launch.work;
        resize_elements(work, work.windows[block / work.row_blocks], block,
                        thread);
      });
    }
  }
  void operator()(const Mask& mask) const {
    for (std::size_t first = 0; first < mask.boxes.size(); first += most) {
      const auto boxes =
          mask.boxes.subspan(first, std::min(most, mask.boxes.size() - first));
      std::vector<WorkBox> staged;
      for (const MaskBox& box : boxes) staged.push_back(work_of(box, mask));
      const MaskLaunch launch = plan_mask(mask, boxes, staged.data());
      run_threads(launch.blocks, random, [&](auto block, auto thread) {
        const MaskWork& work = launch.work;
        mask_elements(work, work.boxes[block / work.box_blocks], block, thread);
      });
    }
  }
  void operator()(const Move& move) const {
    for (std::size_t first = 0; first < move.moved.size(); first += most) {
      const auto rows =
          move.moved.subspan(first, std::min(most, move.moved.size() - first));
      std::vector<WorkMovedRow> staged;
      for (const MovedRow& row : rows) staged.push_back(work_of(row));
      const MoveLaunch launch = plan_move(move, rows, staged.data());
      run_threads(launch.blocks, random, [&](auto block, auto thread) {
        const MoveWork& work = launch.work;
        move_elements(work, work.rows[block / work.row_blocks], block, thread);
      });
    }
  }
  void operator()(const Gather&) const { FAIL() << "see gather_plan_test.cpp"; }
  void operator()(const HostKernel&) const { FAIL(); }
};

void expect_what_the_host_gives(DrawnOperation (*draw)(Random&)) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed, 7, 0, 0);
    const DrawnOperation drawn = draw(random);
    std::vector<std::byte> in(drawn.in_bytes), out(drawn.out_bytes);
    for (std::byte& byte : in) byte = static_cast<std::byte>(random.next());
    for (std::byte& byte : out) byte = static_cast<std::byte>(random.next());
    const std::vector<std::byte> right = right_bytes(drawn, in, out);
    const std::size_t most = 1 + random.below(5);
    drawn.with(in.data(), out.data(), [&](const DeviceOperation& operation) {
      std::visit(ByLaunches{random, most}, operation);
    });
    ASSERT_EQ(out, right) << "seed " << seed;
  }
}

TEST(OperationPlan, ACastIsWhatTheHostGives) {
  expect_what_the_host_gives(conformance::drawn_cast);
}
TEST(OperationPlan, ACropIsWhatTheHostGives) {
  expect_what_the_host_gives(conformance::drawn_crop);
}
TEST(OperationPlan, AResizeIsWhatTheHostGives) {
  expect_what_the_host_gives(conformance::drawn_resize);
}
TEST(OperationPlan, AMaskIsWhatTheHostGives) {
  expect_what_the_host_gives(conformance::drawn_mask);
}
TEST(OperationPlan, AMoveIsWhatTheHostGives) {
  expect_what_the_host_gives(conformance::drawn_move);
}

TEST(OperationPlan, NothingToDoNeedsNoLaunch) {
  const std::vector<Normalization> channels(3);
  EXPECT_EQ(plan_cast({.pixels = 5, .channels = channels}).blocks, 0u);
  EXPECT_EQ(plan_cast({.rows = 5, .channels = channels}).blocks, 0u);
  const std::vector<CropWindow> windows(3);
  EXPECT_EQ(plan_crop({.height = 4, .channels = 1}, 0, windows, nullptr).blocks,
            0u);
  const std::vector<MaskBox> boxes(3);
  EXPECT_EQ(
      plan_mask({.rows = 1, .height = 4, .width = 4}, boxes, nullptr).blocks,
      0u);
  const std::vector<MovedRow> moved(3);
  EXPECT_EQ(plan_move({.rows = 3, .height = 4}, moved, nullptr).blocks, 0u);
}

TEST(OperationPlan, ResizesTakeAsManyWindowsAsTheirTapsHaveRoom) {
  const std::vector<std::byte> numbers(256), image(1);
  const std::vector<std::int32_t> taps(3 * 5);  // of 5 pixels, of 1 tap each
  ResizeWindow window{
      .image = image.data(), .columns = {.most = 1}, .rows = {.most = 1}};
  std::vector<ResizeWindow> windows(10, window);
  windows[9].image = nullptr;  // has none
  const Resize resize{.height = 5,
                      .width = 5,
                      .channels = 1,
                      .numbers = numbers,
                      .taps = taps,
                      .windows = windows};
  const std::size_t each = sizeof(WorkResizeWindow) + 2 * 15 * 4;
  ResizePart part = next_part(resize, 0, 256 + 3 * each);
  EXPECT_EQ(part.windows.size(), 3u);
  EXPECT_EQ(part.bytes, 256 + 3 * each);
  part = next_part(resize, 3, 256 + 4 * each - 1);
  EXPECT_EQ(part.windows.size(), 3u);
  part = next_part(resize, 8, 1);
  EXPECT_EQ(part.windows.size(), 1u) << "one goes whatever it takes";
  part = next_part(resize, 9, 256 + each);
  EXPECT_EQ(part.bytes, 256 + sizeof(WorkResizeWindow));
}

TEST(OperationPlan, GivesEachRowAsManyBlocksAsItsElementsNeed) {
  const std::vector<Normalization> channels(3);
  const CastLaunch cast =
      plan_cast({.rows = 10, .pixels = 224 * 224, .channels = channels});
  EXPECT_EQ(cast.work.row_blocks, 74u);  // 150,528 in blocks of 2,048
  EXPECT_EQ(cast.blocks, 740u);
  const ElementShare last = elements_of(739, 74, 150'528);
  EXPECT_EQ(last.row, 9u);
  EXPECT_EQ(last.end, 150'528u);
}

}  // namespace
}  // namespace penstock::cuda
