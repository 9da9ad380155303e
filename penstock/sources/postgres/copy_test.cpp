#include "penstock/sources/postgres/copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "penstock/sources/postgres/big_endian.h"
#include "penstock/sources/postgres/encode.h"
#include "penstock/sources/postgres/test_server.h"

namespace penstock::postgres {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string field(std::string_view text) {
  std::string bytes;
  append_big(bytes, static_cast<std::int32_t>(text.size()));
  return bytes + std::string(text);
}

std::string row(std::initializer_list<std::string_view> texts) {
  std::string bytes;
  append_row_head(bytes, texts.size());
  for (std::string_view text : texts) bytes += field(text);
  return bytes;
}

std::string header() {
  std::string bytes;
  append_copy_header(bytes);
  return bytes;
}

std::string trailer() {
  std::string bytes;
  append_copy_trailer(bytes);
  return bytes;
}

/// Rows as "a|b", from pieces of so many bytes.
std::vector<std::string> decoded(const std::string& stream, std::size_t piece,
                                 std::size_t fields = 2) {
  CopyDecoder decoder(fields, "a test");
  std::vector<std::string> rows;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    // Bytes of its own, so that reading beyond them is noticed.
    auto bytes = std::make_unique<char[]>(std::min(piece, stream.size() - at));
    std::size_t size = stream.copy(bytes.get(), piece, at);
    decoder.feed({bytes.get(), size});
    while (decoder.next()) {
      std::string text;
      for (const Field& value : decoder.row())
        text += (&value == decoder.row().data() ? "" : "|") +
                (value.null() ? "NULL" : std::string(value.text()));
      rows.push_back(text);
    }
  }
  decoder.finish();
  return rows;
}

std::string refusal(const std::string& stream) {
  std::string why;
  for (std::size_t piece : {std::size_t{1}, std::size_t{7}, stream.size()}) {
    Error error = error_of([&] { decoded(stream, piece); });
    EXPECT_EQ(error.kind(), ErrorKind::source) << error.what();
    EXPECT_EQ(error.parts().code, "postgres.stream");
    if (!why.empty()) {
      EXPECT_EQ(error.parts().why, why);
    }
    why = error.parts().why;
  }
  return why;
}

TEST(CopyDecoder, GivesTheRowsHoweverTheStreamIsCut) {
  std::string stream = header() + row({"1", "one"}) + row({"", "two"}) +
                       row({"3", std::string(300, 'x')}) + trailer();
  for (std::size_t piece = 1; piece <= stream.size(); ++piece)
    EXPECT_THAT(decoded(stream, piece),
                ElementsAre("1|one", "|two", "3|" + std::string(300, 'x')))
        << piece;
}

TEST(CopyDecoder, TellsNullFromNothing) {
  std::string null;
  append_row_head(null, 2);
  append_big(null, std::int32_t{-1});
  null += field("");
  EXPECT_THAT(decoded(header() + null + trailer(), 4), ElementsAre("NULL|"));
}

TEST(CopyDecoder, GivesNoRowOfAnEmptyTable) {
  EXPECT_THAT(decoded(header() + trailer(), 100), ElementsAre());
}

TEST(CopyDecoder, SkipsWhatAHeaderMayAlsoHold) {
  std::string longer("PGCOPY\n\377\r\n\0", 11);
  append_big(longer, std::int32_t{1});  // a flag that nobody needs to know
  append_big(longer, std::int32_t{3});
  longer += "abc";
  EXPECT_THAT(decoded(longer + row({"1", "2"}) + trailer(), 5),
              ElementsAre("1|2"));
}

TEST(CopyDecoder, RefusesAnotherBeginning) {
  EXPECT_THAT(refusal("1\tone\n2\ttwo\n and more of it"),
              HasSubstr("do not begin"));
  std::string flags("PGCOPY\n\377\r\n\0", 11);
  append_big(flags, std::int32_t{0x10000});
  append_big(flags, std::int32_t{0});
  EXPECT_THAT(refusal(flags + trailer()), HasSubstr("flags 65536"));
  std::string negative("PGCOPY\n\377\r\n\0", 11);
  append_big(negative, std::int32_t{0});
  append_big(negative, std::int32_t{-5});
  EXPECT_THAT(refusal(negative + trailer()), HasSubstr("negative length"));
}

TEST(CopyDecoder, RefusesAStreamThatEndsTooEarly) {
  std::string stream = header() + row({"1", "one"}) + trailer();
  for (std::size_t size = 1; size < stream.size(); ++size)
    EXPECT_THAT(refusal(stream.substr(0, size)), HasSubstr("the data end"))
        << size;
  CopyDecoder nothing(2, "a test");
  EXPECT_EQ(error_of([&] { nothing.finish(); }).parts().code,
            "postgres.stream");
}

TEST(CopyDecoder, RefusesRowsOfAnotherShape) {
  EXPECT_THAT(refusal(header() + row({"1"}) + trailer()),
              HasSubstr("a row has 1 columns, but 2"));
  EXPECT_THAT(refusal(header() + row({"1", "2", "3"}) + trailer()),
              HasSubstr("3 columns"));
  std::string negative;
  append_big(negative, std::int16_t{-2});
  EXPECT_THAT(refusal(header() + negative), HasSubstr("-2 columns"));
  std::string length;
  append_row_head(length, 2);
  append_big(length, std::int32_t{-2});
  EXPECT_THAT(refusal(header() + length + trailer()),
              HasSubstr("has the length -2"));
  EXPECT_THAT(refusal(header() + trailer() + "more"),
              HasSubstr("bytes follow the end"));
}

}  // namespace
}  // namespace penstock::postgres
