#include "penstock/cache/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "penstock/base/error.h"
#include "penstock/base/fake/memory_files.h"
#include "penstock/base/hash.h"

namespace penstock {
namespace {

using testing::HasSubstr;

std::string bytes_of(std::size_t count, unsigned from) {
  std::string bytes(count, '\0');
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<char>((i * 31 + from) >> 2);
  return bytes;
}

std::span<const std::byte> bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// Rows that end in the middle of a block, keys, and an empty array.
struct Contents {
  std::string rows = bytes_of(150'000, 1), keys = bytes_of(777, 2);

  void write(FileSystem& files, const std::string& path,
             std::size_t piece = 7777) const {
    StoreWriter writer(files, path);
    writer.begin("rows");
    for (std::size_t at = 0; at < rows.size(); at += piece)
      writer.append(bytes(rows).subspan(
          at, std::min<std::size_t>(piece, rows.size() - at)));
    writer.begin("keys");
    writer.append(bytes(keys));
    writer.begin("nothing");
    Json about;
    about["fingerprint"] = "abc";
    writer.seal(about);
  }
};

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.parts().code + ": " + error.what();
  }
  return "no error";
}

class StoreTest : public testing::Test {
 protected:
  StoreTest() { contents_.write(files_, "a.store"); }
  std::string& file() { return *files_.files["a.store"]; }

  MemoryFiles files_;
  Contents contents_;
};

TEST_F(StoreTest, GivesBackWhatWasWritten) {
  Store store(files_, "a.store");
  EXPECT_EQ(store.about().find("fingerprint")->string(), "abc");
  EXPECT_TRUE(std::ranges::equal(store.checked("rows"), bytes(contents_.rows)));
  EXPECT_TRUE(std::ranges::equal(store.checked("keys"), bytes(contents_.keys)));
  EXPECT_EQ(store.checked("nothing").size(), 0u);
  EXPECT_FALSE(store.has("runs"));
  EXPECT_THAT(error_of([&] { store.array("runs"); }),
              HasSubstr("no array 'runs'"));
  store.check_all();
}

TEST_F(StoreTest, PiecesOfAnySizeGiveTheSameBytes) {
  for (std::size_t piece :
       {std::size_t{1000}, kStoreBlock, kStoreBlock + 1, 2 * kStoreBlock,
        std::size_t{140'000}, std::size_t{1} << 20}) {
    contents_.write(files_, "b.store", piece);
    EXPECT_EQ(*files_.files["b.store"], file()) << piece;
  }
}

TEST_F(StoreTest, ArraysBeginAtPages) {
  Store store(files_, "a.store");
  for (const char* name : {"rows", "keys", "nothing"})
    EXPECT_EQ(
        reinterpret_cast<const char*>(store.array(name).data()) - file().data(),
        (reinterpret_cast<const char*>(store.array(name).data()) -
         file().data()) /
            4096 * 4096);
}

TEST_F(StoreTest, TheRealFileSystemMapsIt) {
  std::string path = testing::TempDir() + "/real.store";
  contents_.write(real_files(), path);
  Store store(real_files(), path);
  EXPECT_TRUE(std::ranges::equal(store.checked("rows"), bytes(contents_.rows)));
  contents_.rows = bytes_of(10, 3);
  contents_.write(real_files(), path);
  EXPECT_EQ(store.checked("rows").size(), 150'000u) << "the old one is kept";
  EXPECT_EQ(Store(real_files(), path).checked("rows").size(), 10u);
  std::filesystem::remove(path);
}

TEST_F(StoreTest, AStoreOfNoArraysIsOneToo) {
  StoreWriter(files_, "empty").seal(Json());
  Store store(files_, "empty");
  store.check_all();
}

TEST_F(StoreTest, OnlyTheBlocksThatAreAskedForAreRead) {
  Store store(files_, "a.store");
  file()[70'000] ^= 1;  // the rows begin at byte 0
  store.check("rows", 0, 65'536);
  store.check("rows", 131'072, 150'000);
  store.check("rows", 65'536, 65'536);
  EXPECT_THAT(error_of([&] { store.check("rows", 65'535, 65'537); }),
              testing::AllOf(HasSubstr("store.damaged"),
                             HasSubstr("a.store:65536"), HasSubstr("'rows'")));
  EXPECT_FALSE(store.find("rows").all_checked());
  file()[70'000] ^= 1;
  store.check("rows", 0, 150'000);
  EXPECT_TRUE(store.find("rows").all_checked());
  file()[70'000] ^= 1;
  store.check("rows", 0, 150'000);  // a block is checked once
  EXPECT_THAT(error_of([&] { store.check_all(); }), HasSubstr("store.damaged"));
}

TEST_F(StoreTest, ThreadsCheckTheSameBlocks) {
  Store store(files_, "a.store");
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] { store.check("rows", 0, 150'000); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(store.find("rows").all_checked());
  EXPECT_FALSE(store.find("keys").all_checked());
}

// Of a small store, so that it takes a second.
TEST_F(StoreTest, EveryBitThatFlipsIsNoticed) {
  contents_ = {.rows = bytes_of(300, 4), .keys = bytes_of(50, 5)};
  contents_.write(files_, "a.store");
  for (std::size_t at = 0; at < file().size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      file()[at] ^= static_cast<char>(1 << bit);
      try {
        Store(files_, "a.store").check_all();
        ADD_FAILURE() << "byte " << at << ", bit " << bit;
        return;
      } catch (const Error&) {
      }
      file()[at] ^= static_cast<char>(1 << bit);
    }
}

TEST_F(StoreTest, IsNotTakenWhereItIsCutOff) {
  const std::string whole = file();
  for (std::size_t size : {std::size_t{0}, std::size_t{63}, std::size_t{4096},
                           whole.size() - 64, whole.size() - 1}) {
    file() = whole.substr(0, size);
    EXPECT_THAT(error_of([&] { Store(files_, "a.store"); }),
                HasSubstr("store.unusable"))
        << size;
  }
  file() = whole + whole;
  EXPECT_THAT(error_of([&] { Store(files_, "a.store"); }),
              HasSubstr("expected " + std::to_string(whole.size())));
}

TEST_F(StoreTest, AnotherVersionAndByteOrderAreNamed) {
  const std::string whole = file();
  std::size_t footer = whole.size() - 64;
  std::swap(file()[footer + 12], file()[footer + 15]);
  std::swap(file()[footer + 13], file()[footer + 14]);
  EXPECT_THAT(error_of([&] { Store(files_, "a.store"); }),
              HasSubstr("another byte order"));
  file() = whole;
  file()[footer + 8] = 2;
  std::uint64_t hash = hash64(std::string_view(file()).substr(footer, 56));
  std::memcpy(&file()[footer + 56], &hash, sizeof(hash));
  EXPECT_THAT(error_of([&] { Store(files_, "a.store"); }),
              HasSubstr("format version 2, expected 1"));
}

TEST_F(StoreTest, AWriteThatFailsLeavesWhatWasThere) {
  files_.calls = 0;
  contents_.write(files_, "b.store");
  const int calls = files_.calls;
  files_.files.erase("b.store");
  for (bool recovers : {true, false})
    for (int k = 0; k < calls; ++k) {
      files_.calls = 0;
      files_.fails_at = k;
      files_.recovers = recovers;
      EXPECT_THAT(error_of([&] { contents_.write(files_, "b.store"); }),
                  HasSubstr("No space left"));
      EXPECT_FALSE(files_.files.contains("b.store"));
    }
  files_.fails_at = -1;
  contents_.write(files_, "b.store");
  Store(files_, "b.store").check_all();
}

}  // namespace
}  // namespace penstock
