// Stores of tokens as other programs write them, good and bad.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "penstock/base/listed_numbers.h"
#include "penstock/base/with_number.h"
#include "penstock/sources/files/test_damage.h"
#include "penstock/sources/files/test_folder.h"

namespace penstock::token_store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class... Numbers>
std::string packed(Numbers... numbers) {
  std::string bytes;
  (bytes.append(reinterpret_cast<const char*>(&numbers), sizeof(numbers)), ...);
  return bytes;
}

std::string tokens(std::initializer_list<int> ids) {
  std::string bytes;
  for (int id : ids) bytes += packed(static_cast<std::uint16_t>(id));
  return bytes;
}

std::string megatron_index(std::uint8_t type, std::vector<std::int32_t> lengths,
                           std::int64_t width = 2) {
  std::string index("MMIDIDX\0", 9);
  index += packed(std::uint64_t{1}, type, std::uint64_t{lengths.size()},
                  std::uint64_t{lengths.size() + 1});
  for (std::int32_t length : lengths) index += packed(length);
  std::int64_t at = 0;
  for (std::int32_t length : lengths) {
    index += packed(at);
    at += width * length;
  }
  for (std::size_t d = 0; d <= lengths.size(); ++d)
    index += packed(static_cast<std::int64_t>(d));
  return index;
}

std::string llmc(std::int32_t magic, std::int32_t count,
                 const std::string& ids) {
  std::string header = packed(magic, std::int32_t{1}, count);
  header.resize(1024);
  return header + ids;
}

class TokenStoreTest : public testing::Test {
 protected:
  /// The documents: "1 2 3".
  std::vector<std::string> documents(const std::string& path,
                                     Json more = Json(Json::Object{})) {
    Json section = files::section_of("token_store", folder_.path(path));
    for (const auto& [key, value] : more.object()) section[key] = value;
    std::vector<std::string> all;
    try {
      auto source = files::open_files(
          section,
          {{.column = "input_ids", .as = ReadAs::value, .setting = "test"}});
      auto reader = open_checked_reader(*source);
      for (const Partition& part : source->partitions(1))
        reader->scan(part, {}, [&](KeyList&, Block& block) {
          for (std::int64_t row = 0; row < block.rows; ++row)
            all.push_back(shown(block.columns[0], row));
          return true;
        });
    } catch (const Error& error) {
      all.push_back(std::string("error: ") + error.what());
    }
    return all;
  }
  static std::string shown(const Column& column, std::int64_t row) {
    const ListedNumbers found = *listed_numbers(column, row);
    std::string text;
    with_number(found.dtype, [&]<class From>(Typed<From>) {
      for (std::int64_t i = 0; i < found.count; ++i) {
        From id{};
        std::memcpy(
            &id, found.bytes.data() + static_cast<std::size_t>(i) * sizeof(id),
            sizeof(id));
        text += (i == 0 ? "" : " ") + Json(static_cast<double>(id)).dump();
      }
    });
    return text;
  }
  static Json with(const char* key, Json value) {
    Json more(Json::Object{});
    more[key] = std::move(value);
    return more;
  }
  files::TestFolder folder_;
};

TEST_F(TokenStoreTest, OfMegatronHasItsDocuments) {
  folder_.write("a.bin", tokens({1, 2, 3, 4, 5}));
  folder_.write("a.idx", megatron_index(8, {2, 0, 3}));
  EXPECT_THAT(documents("a.bin"), ElementsAre("1.0 2.0", "", "3.0 4.0 5.0"));
}

TEST_F(TokenStoreTest, OfMegatronMayHoldDocumentsInAnyPlace) {
  folder_.write("a.bin", packed(std::int32_t{7}, std::int32_t{8}));
  std::string index = megatron_index(4, {1, 1}, 4);
  const std::string swapped = packed(std::int64_t{4}, std::int64_t{0});
  index.replace(9 + 8 + 1 + 16 + 8, 16, swapped);
  folder_.write("a.idx", index);
  EXPECT_THAT(documents("a.bin"), ElementsAre("8.0", "7.0"));
}

TEST_F(TokenStoreTest, OfDatatroveEndsDocumentsWhereItsIndexSays) {
  folder_.write("a.ds", tokens({1, 2, 3}));
  folder_.write("a.ds.index", packed(std::uint64_t{1}, std::uint64_t{3}));
  EXPECT_THAT(documents("a.ds"), ElementsAre("1.0", "2.0 3.0"));
  folder_.write("b.ds", packed(std::uint32_t{70000}));
  folder_.write("b.ds.index", packed(std::uint64_t{1}));
  EXPECT_THAT(documents("b.ds"), ElementsAre("70000.0"));
}

TEST_F(TokenStoreTest, OfLlmCEndsDocumentsBehindATokenThatIsNamed) {
  folder_.write("a.bin", llmc(20240520, 4, tokens({1, 9, 2, 3})));
  EXPECT_THAT(documents("a.bin"), ElementsAre("1.0 9.0 2.0 3.0"));
  EXPECT_THAT(documents("a.bin", with("document_end", 9)),
              ElementsAre("1.0 9.0", "2.0 3.0"));
}

TEST_F(TokenStoreTest, WithoutAHeaderNeedsTheWidthOfATokenAlone) {
  folder_.write("a.bin", tokens({1, 2}));
  EXPECT_THAT(documents("a.bin"), ElementsAre(HasSubstr("source.dtype")));
  EXPECT_THAT(documents("a.bin", with("dtype", "uint16")),
              ElementsAre("1.0 2.0"));
  folder_.write("a.json", R"({"dtype": "uint16"})");
  EXPECT_THAT(documents("a.bin"), ElementsAre("1.0 2.0"));
}

TEST_F(TokenStoreTest, IsReadWithAllOthersInItsFolder) {
  folder_.write("s/a.bin", tokens({1}));
  folder_.write("s/a.idx", megatron_index(8, {1}));
  folder_.write("s/b.ds", tokens({2}));
  folder_.write("s/b.ds.index", packed(std::uint64_t{1}));
  EXPECT_THAT(documents("s"), ElementsAre("1.0", "2.0"));
  EXPECT_THAT(documents("s/a.idx"), ElementsAre(HasSubstr("is the index")));
}

TEST_F(TokenStoreTest, ThatContradictsItselfIsNamed) {
  folder_.write("a.bin", tokens({1, 2, 3}));
  auto megatron = [&](const std::string& index) {
    folder_.write("a.idx", index);
    return documents("a.bin").back();
  };
  const std::string good = megatron_index(8, {3});
  EXPECT_THAT(megatron("no index at all"), HasSubstr("MMIDIDX"));
  EXPECT_THAT(megatron(good.substr(0, 30)), HasSubstr("ends within"));
  EXPECT_THAT(megatron(megatron_index(6, {3})), HasSubstr("token type 6"));
  EXPECT_THAT(megatron(megatron_index(8, {4})), HasSubstr("has 6 bytes"));
  EXPECT_THAT(megatron(megatron_index(8, {-1})), HasSubstr("document 0"));
  std::string later = good;
  later[9] = 2;
  EXPECT_THAT(megatron(later), HasSubstr("version 2"));

  folder_.write("b.ds", tokens({1, 2, 3}));
  auto datatrove = [&](const std::string& index) {
    folder_.write("b.ds.index", index);
    return documents("b.ds").back();
  };
  EXPECT_THAT(datatrove("odd"), HasSubstr("cut off"));
  EXPECT_THAT(datatrove(packed(std::uint64_t{4})), HasSubstr("4 tokens"));
  EXPECT_THAT(datatrove(packed(std::uint64_t{5}, std::uint64_t{3})),
              HasSubstr("document 0"));

  folder_.write("c.bin", llmc(20240520, 5, tokens({1})));
  EXPECT_THAT(documents("c.bin"), ElementsAre(HasSubstr("5 tokens")));
  folder_.write("d.bin", "odd");
  EXPECT_THAT(documents("d.bin", with("dtype", "uint16")),
              ElementsAre(HasSubstr("within a token")));
}

TEST_F(TokenStoreTest, GivesRowsOrAnErrorThatNamesTheFileWhenDamaged) {
  folder_.write("a.bin", tokens({1, 2, 3, 4, 5, 6, 7, 8, 9}));
  const std::string index =
      folder_.write("a.idx", megatron_index(8, {2, 3, 0, 4}));
  Json section = files::section_of("token_store", folder_.path("a.bin"));
  files::read_damaged(section, index, files::damages(300), 1);
}

}  // namespace
}  // namespace penstock::token_store
