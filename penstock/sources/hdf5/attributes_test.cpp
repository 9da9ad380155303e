// Attributes as columns, and names of enums.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "penstock/sources/files/test_arrays.h"
#include "penstock/sources/hdf5/test_writing.h"

namespace penstock::hdf5 {
namespace {

using files::rows_of;
using files::wanted;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Whole = std::vector<std::int64_t>;
using Real = std::vector<double>;

class AttributesOfHdf5 : public testing::Test {
 protected:
  Json section() const {
    return files::section_of("hdf5", folder_.path("a.h5"));
  }
  Schema schema(const Json& of) const {
    return read_schema(parse_source_spec(of, "source"));
  }
  std::string why_left_out(const Json& of, const std::string& name) const {
    for (const LeftOutColumn& one : schema(of).left_out)
      if (one.name == name) return one.why;
    return "it is not";
  }

  files::TestFolder folder_;
};

TEST_F(AttributesOfHdf5, ThatAreListsOfNumbersAreTensors) {
  {
    TestFile file(folder_.path("a.h5"));
    file.write("x", Whole{7, 8, 9});
    file.attribute("/", "places", Whole{1, 2}, {2});
    file.attribute("/x", "rates", Real{3, 4, 5}, {3});
    file.attribute("/x", "one", Whole{6}, {1});
  }
  EXPECT_THAT(rows_of(section(), {wanted("/x"), wanted("@places"),
                                  wanted("/x@rates"), wanted("/x@one")}),
              ElementsAre("7 | 1 2 | 3 4 5 | 6", "8 | 1 2 | 3 4 5 | 6",
                          "9 | 1 2 | 3 4 5 | 6"));
  EXPECT_THAT(schema(section()).find("@places")->item, ElementsAre(2));
}

// Only a type that is filled up by blanks has none of its own at the end.
TEST_F(AttributesOfHdf5, AndTextsOfAFixedSizeKeepTheirOwnBlanks) {
  const std::vector<std::string> texts = {"a b ", "  ", "c"};
  {
    TestFile file(folder_.path("a.h5"));
    file.write_fixed("zeros", 6, texts, H5T_STR_NULLPAD);
    file.write_fixed("ended", 6, texts, H5T_STR_NULLTERM);
    file.write_fixed("blanks", 6, texts, H5T_STR_SPACEPAD);
  }
  EXPECT_THAT(
      rows_of(section(), {wanted("/zeros"), wanted("/ended"), wanted("/blanks"),
                          wanted("/zeros@first"), wanted("/blanks@first")}),
      ElementsAre("a b  | a b  | a b | a b  | a b", "   |    |  | a b  | a b",
                  "c | c | c | a b  | a b"));
}

TEST_F(AttributesOfHdf5, OfALibraryAreNoneWhereItsClassSaysSo) {
  {
    TestFile file(folder_.path("a.h5"));
    file.write("x", Whole{7, 8});
    file.attribute("/x", "CLASS", Whole{3}, {1});
    file.group("/s");
    for (const char* name : {"/s/a", "/s/b"}) {
      file.group(name);
      file.attribute(name, "CLASS", Whole{name[3] - 'a'}, {1});
      file.write(std::string(name) + "/x", Whole{1});
    }
  }
  EXPECT_NE(schema(section()).find("/x@CLASS"), nullptr)
      << "a label of the user";
  Json samples = section();
  samples["samples"] = "groups";
  samples["group"] = "/s";
  EXPECT_NE(schema(samples).find("@CLASS"), nullptr);
}

TEST_F(AttributesOfHdf5, ThatAreNotReadAreNamed) {
  {
    TestFile file(folder_.path("a.h5"));
    file.write("x", Whole{7, 8});
    file.attribute("/x", "square", Whole{1, 2, 3, 4}, {2, 2});
    file.attribute("/", "long", Whole(5000), {5000});
  }
  EXPECT_THAT(why_left_out(section(), "/x@square"),
              HasSubstr("an array of several dimensions"));
  EXPECT_THAT(why_left_out(section(), "@long"), HasSubstr("empty or longer"));
  EXPECT_THAT(rows_of(section(), {wanted("/x@square")}),
              ElementsAre(HasSubstr("hdf5.unreadable")));
}

TEST_F(AttributesOfHdf5, OfSamplesAreTensorsWhereAllHaveOneLength) {
  {
    TestFile file(folder_.path("a.h5"));
    for (const char* name : {"/a", "/b"}) {
      file.group(name);
      file.write(std::string(name) + "/x", Whole{1});
      file.attribute(name, "box", Whole{name[1], 2}, {2});
    }
    file.attribute("/a", "tags", Whole{1, 2}, {2});
    file.attribute("/b", "tags", Whole{1, 2, 3}, {3});
  }
  Json of = section();
  of["samples"] = "groups";
  EXPECT_THAT(rows_of(of, {wanted("name"), wanted("@box")}),
              ElementsAre("a | 97 2", "b | 98 2"));
  EXPECT_THAT(why_left_out(of, "@tags"), HasSubstr("another length"));
}

TEST_F(AttributesOfHdf5, NanIsANumberAndIntegersStandBesideOthers) {
  {
    TestFile file(folder_.path("a.h5"));
    file.attribute("/", "limits", Real{1.5, std::nan("")}, {2});
    for (const char* name : {"/a", "/b"}) {
      file.group(name);
      file.write(std::string(name) + "/x", Whole{1});
    }
    file.attribute("/a", "box", Real{3, 5}, {2});
    file.attribute("/b", "box", Whole{1, 2}, {2});
  }
  Json of = section();
  of["samples"] = "groups";
  EXPECT_THAT(rows_of(of, {wanted("name"), wanted("@box")}),
              ElementsAre("a | 3 5", "b | 1 2"));
  EXPECT_THAT(schema(of).find("@box")->declared, HasSubstr("float64"));
  EXPECT_EQ(schema(section()).find("@limits")->item, Shape{2});
}

TEST_F(AttributesOfHdf5, AnEnumGivesItsNamesAsClasses) {
  {
    TestFile file(folder_.path("a.h5"));
    file.write_enum("kind", {{"loud", 1}, {"quiet", 0}, {"mixed", 2}},
                    {1, 0, 2});
    file.write_enum("other", {{"left", 5}, {"right", 7}}, {5, 7, 5});
  }
  const Schema of = schema(section());
  EXPECT_THAT(of.find("/kind")->values, ElementsAre("quiet", "loud", "mixed"));
  EXPECT_EQ(of.find("/kind")->declared, "int8 (an enum)");
  EXPECT_TRUE(of.find("/other")->values.empty());
  EXPECT_THAT(rows_of(section(), {wanted("/kind"), wanted("/other")}),
              ElementsAre("1 | 5", "0 | 7", "2 | 5"));
}

}  // namespace
}  // namespace penstock::hdf5
