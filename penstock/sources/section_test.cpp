#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "penstock/base/error.h"
#include "penstock/base/fake/other_value.h"
#include "penstock/base/fake/test_folder.h"
#include "penstock/sources/files/file_settings.h"
#include "penstock/sources/source_uri.h"
#include "penstock/sources/sources.h"
#include "penstock/sources/uri_settings.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

SourceSpec parsed(const char* text) {
  return parse_source_spec(Json::parse(text, "test"), "source");
}

std::string refusal(const char* text) {
  try {
    parsed(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    return error.what();
  }
  return "accepted";
}

TEST(SourceSpec, TakesEveryKeyOfSqlite) {
  SourceSpec spec = parsed(R"({"kind": "sqlite", "path": "a.sqlite",
      "table": "t", "key": "k", "where": "x > 1", "on_bad": "skip",
      "round_trip_ms": 1.5})");
  EXPECT_EQ(spec.kind, "sqlite");
  EXPECT_EQ(spec.path, "a.sqlite");
  EXPECT_EQ(spec.table, "t");
  EXPECT_THAT(spec.key, ElementsAre("k"));
  EXPECT_EQ(spec.where, "x > 1");
  EXPECT_TRUE(spec.skip_bad);
  EXPECT_EQ(spec.round_trip_ms, 1.5);
}

TEST(SourceSpec, TakesAKeyOfSeveralColumns) {
  SourceSpec spec =
      parsed(R"({"kind": "sqlite", "path": "a", "key": ["k", "l"]})");
  EXPECT_THAT(spec.key, ElementsAre("k", "l"));
  EXPECT_EQ(source_section(spec).find("key")->dump(), R"(["k", "l"])");
  spec = parsed(R"({"kind": "sqlite", "path": "a", "key": ["k"]})");
  EXPECT_EQ(*source_section(spec).find("key"), Json("k"));
  EXPECT_EQ(source_section(parsed(R"("sqlite:a#t")")).find("key"), nullptr);
  for (const char* key : {"7", "[]", R"(["a", "a"])", R"(["a", ""])", "[1]"})
    EXPECT_THAT(refusal((R"({"kind": "sqlite", "path": "a", "key": )" +
                         std::string(key) + "}")
                            .c_str()),
                HasSubstr("source.key"))
        << key;
}

TEST(SourceSpec, TakesAQueryInPlaceOfATable) {
  const char* text = R"({"kind": "sqlite", "path": "a", "key": "id",
                         "query": "SELECT id FROM t"})";
  SourceSpec spec = parsed(text);
  EXPECT_EQ(spec.query, "SELECT id FROM t");
  EXPECT_EQ(source_section(parse_source_spec(source_section(spec), "source")),
            source_section(spec));
  EXPECT_THAT(
      refusal(R"({"kind": "sqlite", "path": "a", "table": "t",
                          "query": "SELECT 1"})"),
      AllOf(HasSubstr("source.query"), HasSubstr("\"table\" are given")));
  EXPECT_THAT(refusal(R"({"kind": "sqlite", "path": "a", "where": "x > 1",
                          "query": "SELECT 1"})"),
              AllOf(HasSubstr("source.where"),
                    HasSubstr("write the condition into the query")));
  EXPECT_THAT(refusal(R"({"kind": "csv", "path": "a", "query": "SELECT 1"})"),
              HasSubstr("source.query"));
}

TEST(SourceSpec, TakesAQueryFromAUriAsItIs) {
  SourceSpec spec = parsed(
      R"("sqlite:a b.sqlite?query=SELECT x FROM t WHERE y LIKE '%20#' & 1")");
  EXPECT_EQ(spec.path, "a b.sqlite");
  EXPECT_EQ(spec.query, "SELECT x FROM t WHERE y LIKE '%20#' & 1");
  EXPECT_EQ(spec.table, "");
  spec = parsed(R"("sqlite:a?key=k,l&query=SELECT 1 ?key=")");
  EXPECT_EQ(spec.path, "a");
  EXPECT_THAT(spec.key, ElementsAre("k", "l"));
  EXPECT_EQ(spec.query, "SELECT 1 ?key=");
  spec = parsed(
      R"("postgresql://u@h/db?sslmode=require&key=id&query=SELECT a #> b")");
  EXPECT_EQ(spec.uri, "postgresql://u@h/db?sslmode=require");
  EXPECT_THAT(spec.key, ElementsAre("id"));
  EXPECT_EQ(spec.query, "SELECT a #> b");
  spec = parsed(R"("postgresql://u@h/db?query=TABLE t")");
  EXPECT_EQ(spec.uri, "postgresql://u@h/db");
  EXPECT_EQ(spec.query, "TABLE t");
  EXPECT_THAT(refusal(R"("sqlite:a?query=")"), HasSubstr("no query follows"));
  EXPECT_THAT(refusal(R"("sqlite:a?key=,k&query=SELECT 1")"),
              HasSubstr("a name is empty"));
}

TEST(SourceSpec, TakesTheKeysOfPostgres) {
  SourceSpec spec = parsed(R"({"kind": "postgres", "uri": "postgresql:///db",
      "table": "t", "connections": 4})");
  EXPECT_EQ(spec.kind, "postgres");
  EXPECT_EQ(spec.uri, "postgresql:///db");
  EXPECT_EQ(spec.connections, 4);
}

TEST(SourceSpec, IsMadeOfOtherSources) {
  SourceSpec spec = parsed(R"({"kind": "concatenated", "on_bad": "skip",
      "sources": ["sqlite:a.sqlite#t", {"kind": "joined", "sources": [
          {"kind": "sqlite", "path": "b"}, "sqlite:c.sqlite"]}]})");
  EXPECT_EQ(spec.kind, "concatenated");
  EXPECT_TRUE(spec.skip_bad);
  ASSERT_EQ(spec.sources.size(), 2u);
  EXPECT_EQ(spec.sources[0].table, "t");
  ASSERT_EQ(spec.sources[1].sources.size(), 2u);
  EXPECT_EQ(spec.sources[1].sources[1].path, "c.sqlite");
  Json shown = source_section(spec);
  SourceSpec again = parse_source_spec(shown, "source");
  EXPECT_EQ(source_section(again), shown);
}

TEST(SourceSpec, RefusesWhatASourceMadeOfOthersCannotHave) {
  auto refused = [](const std::string& members) {
    return refusal(("{\"kind\": \"joined\", " + members + "}").c_str());
  };
  const std::string two = R"("sources": ["sqlite:a", "sqlite:b"])";
  EXPECT_EQ(refused(two), "accepted");
  EXPECT_THAT(refused(two + R"(, "table": "t")"),
              HasSubstr("move it into one of \"sources\""));
  EXPECT_THAT(refused(two + R"(, "path": "t")"), HasSubstr("path"));
  EXPECT_THAT(refused(R"("on_bad": "stop")"), HasSubstr("source.sources"));
  EXPECT_THAT(refused(R"("sources": ["sqlite:a"])"),
              HasSubstr("at least two sources"));
  EXPECT_THAT(refused(R"("sources": ["sqlite:a", "sqlite:b", "sqlite:c"])"),
              HasSubstr("exactly two sources can be joined"));
  EXPECT_THAT(refused(R"("sources": ["sqlite:a", {"kind": "sqlite"}])"),
              HasSubstr("source.sources[1]"));
  EXPECT_THAT(refused(R"("sources": ["sqlite:a",
                  {"kind": "sqlite", "path": "b", "on_bad": "skip"}])"),
              HasSubstr("source.sources[1].on_bad"));
}

TEST(SourceSpec, IsStoredWithoutSecretsWhereverTheyStand) {
  Json section = Json::parse(R"({"kind": "concatenated", "sources": [
      "sqlite:a.sqlite#t", "postgresql://u:SECRET@h/db#t",
      "postgresql://u:SECRET@h/db?query=SELECT '@'",
      {"kind": "postgres", "uri": "postgresql://u:SECRET@h/db"}]})",
                             "test");
  std::string stored = without_secrets_of_source(section).dump();
  EXPECT_THAT(stored, Not(HasSubstr("SECRET")));
  EXPECT_THAT(stored, HasSubstr("postgresql://u@h/db#t"));
  EXPECT_THAT(stored, HasSubstr("postgresql://u@h/db?query=SELECT '@'"));
  EXPECT_THAT(stored, HasSubstr("sqlite:a.sqlite#t"));
}

TEST(SourceSpec, StopsAtBadRowsByDefault) {
  SourceSpec spec = parsed(R"({"kind": "sqlite", "path": "a"})");
  EXPECT_FALSE(spec.skip_bad);
  EXPECT_EQ(spec.round_trip_ms, 0);
  EXPECT_EQ(spec.connections, 0) << "as many as there are threads";
}

TEST(SourceSpec, OpensTwoConnectionsToAServerByDefault) {
  EXPECT_EQ(parsed(R"({"kind": "postgres", "uri": "a"})").connections, 2);
  EXPECT_EQ(parsed(R"("postgresql://server/db#t")").connections, 2);
}

TEST(SourceSpec, NamesTheNearestKey) {
  EXPECT_THAT(refusal(R"({"kind": "sqlite", "path": "a", "tabel": "t"})"),
              AllOf(HasSubstr("source.tabel"), HasSubstr("'table'")));
}

TEST(SourceSpec, RefusesAKeyOfTheOtherKind) {
  EXPECT_THAT(refusal(R"({"kind": "sqlite", "path": "a", "connections": 2})"),
              AllOf(HasSubstr("source.connections"),
                    HasSubstr("belongs to kind \"postgres\"")));
  EXPECT_THAT(
      refusal(R"({"kind": "postgres", "uri": "a", "path": "b"})"),
      AllOf(HasSubstr("source.path"), HasSubstr("belongs to kind \"sqlite\"")));
  for (const char* text : {R"({"kind": "sqlite", "uri": "pw:SECRET@host"})",
                           R"({"kind": "sqlite", "path": "a", "uri": "b"})"})
    EXPECT_THAT(refusal(text),
                AllOf(HasSubstr("source.uri"),
                      HasSubstr("belongs to kind \"postgres\", but this "
                                "source is of kind \"sqlite\""),
                      HasSubstr("name the file as source.path, or set "
                                "source.kind to \"postgres\""),
                      Not(HasSubstr("SECRET"))));
}

TEST(SourceSpec, ListsTheKinds) {
  EXPECT_THAT(refusal(R"({"kind": "mysql"})"), HasSubstr("sqlite, postgres"));
  EXPECT_THAT(refusal(R"({"path": "a"})"), HasSubstr("source.kind"));
}

TEST(SourceSpec, NeedsAPlace) {
  EXPECT_THAT(refusal(R"({"kind": "sqlite"})"), HasSubstr("source.path"));
  EXPECT_THAT(refusal(R"({"kind": "sqlite", "path": ""})"),
              HasSubstr("source.path"));
  EXPECT_THAT(refusal(R"({"kind": "postgres"})"), HasSubstr("source.uri"));
}

TEST(SourceSpec, ChecksRanges) {
  EXPECT_THAT(
      refusal(R"({"kind": "sqlite", "path": "a", "round_trip_ms": -1})"),
      HasSubstr("source.round_trip_ms"));
  EXPECT_THAT(refusal(R"({"kind": "postgres", "uri": "a", "connections": 0})"),
              HasSubstr("source.connections"));
  EXPECT_THAT(refusal(R"({"kind": "sqlite", "path": "a", "on_bad": "x"})"),
              HasSubstr("stop, skip"));
}

TEST(SourceSpec, RefusesWhatIsNeitherObjectNorText) {
  EXPECT_THAT(refusal("[1]"), HasSubstr("found a list, expected an object"));
}

TEST(SourceUri, NamesASqliteFileAndItsTable) {
  SourceSpec spec = parsed(R"("sqlite:data/a#b.sqlite#t")");
  EXPECT_EQ(spec.kind, "sqlite");
  EXPECT_EQ(spec.path, "data/a#b.sqlite");
  EXPECT_EQ(spec.table, "t");
}

TEST(SourceUri, MayLeaveTheTableOut) {
  SourceSpec spec = parsed(R"("sqlite:/tmp/a.sqlite")");
  EXPECT_EQ(spec.path, "/tmp/a.sqlite");
  EXPECT_EQ(spec.table, "");
}

TEST(SourceUri, NamesAPostgresTable) {
  SourceSpec spec = parsed(R"("postgresql://me@host/db#public.t")");
  EXPECT_EQ(spec.kind, "postgres");
  EXPECT_EQ(spec.uri, "postgresql://me@host/db");
  EXPECT_EQ(spec.table, "public.t");
  EXPECT_EQ(parsed(R"("postgres://host/db")").uri, "postgres://host/db");
}

TEST(SourceUri, SaysTheSettingsOfItsKindBehindThePlace) {
  SourceSpec spec = parsed(
      R"("csv:t.csv?where=x>0 AND y%3D'a%26b'&on_bad=skip&delimiter=;&header=false&na=-,?")");
  EXPECT_EQ(spec.path, "t.csv");
  EXPECT_EQ(spec.where, "x>0 AND y='a&b'");
  EXPECT_TRUE(spec.skip_bad);
  EXPECT_EQ(file_settings_of(spec).delimiter, ";");
  EXPECT_FALSE(file_settings_of(spec).header);
  EXPECT_THAT(file_settings_of(spec).na, ElementsAre("-", "?"));
  EXPECT_EQ(parsed(R"("t.parquet?where=x>0")").kind, "parquet");
  spec = parsed(R"("sqlite:a#b.sqlite?where=a>1&key=k,l#t")");
  EXPECT_EQ(spec.path, "a#b.sqlite");
  EXPECT_EQ(spec.where, "a>1");
  EXPECT_EQ(spec.table, "t");
  EXPECT_THAT(spec.key, ElementsAre("k", "l"));
  spec = parsed(R"("s3://b/x.csv?region=eu&where=x>0")");
  EXPECT_EQ(spec.path, "s3://b/x.csv?region=eu");
  EXPECT_EQ(spec.where, "x>0");
}

TEST(SourceUri, LeavesTheOptionsOfAServerToIt) {
  const std::string uri =
      "postgresql://u:SECRET@h/db?on_bad=skip&sslmode=require&where=a>1#t";
  SourceSpec spec = parse_source_spec(Json(uri), "source");
  EXPECT_EQ(spec.uri, "postgresql://u:SECRET@h/db?sslmode=require");
  EXPECT_EQ(spec.where, "a>1");
  EXPECT_EQ(spec.table, "t");
  EXPECT_TRUE(spec.skip_bad);
  EXPECT_EQ(without_secrets_of_uri(uri),
            "postgresql://u@h/db?sslmode=require&on_bad=skip&where=a>1#t");
}

TEST(SourceUri, NamesASettingThatItDoesNotKnow) {
  EXPECT_THAT(refusal(R"("csv:t.csv?delimeter=;")"),
              AllOf(HasSubstr("source.delimeter"), HasSubstr("delimiter")));
  EXPECT_THAT(refusal(R"("parquet:t.parquet?delimiter=;")"),
              HasSubstr("source.delimiter"));
  EXPECT_THAT(refusal(R"("csv:t.csv?on_bad=ignore")"),
              HasSubstr("source.on_bad"));
  EXPECT_THAT(refusal(R"("csv:t.csv?where=")"), HasSubstr("nothing follows"));
  EXPECT_THAT(refusal(R"("csv:t.csv?where=a&where=b")"), HasSubstr("twice"));
  EXPECT_EQ(parsed(R"("csv:day?.csv")").path, "day?.csv");
}

TEST(SourceUri, TakesAFileOfThatNameWhereThereIsOne) {
  TestFolder folder;
  const std::string path = folder.write("t.csv?where=a", "a\n1\n");
  SourceSpec spec = parse_source_spec(Json("csv:" + path), "source");
  EXPECT_EQ(spec.path, path);
  EXPECT_EQ(spec.where, "");
}

TEST(SourceUri, TakesAFolderForWhatItsFilesAre) {
  TestFolder folder;
  auto found = [&](const std::string& of) {
    try {
      return parse_source_spec(Json(folder.path(of)), "source").kind;
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  folder.write("one/day=1/a.parquet", "");
  folder.write("one/README.md", "");
  EXPECT_EQ(found("one"), "parquet");
  folder.write("saved/state.json", "{}");
  EXPECT_EQ(found("saved"), "hf");
  folder.write("run/state.json", "{}");
  folder.write("run/run.json", "{}");
  EXPECT_NE(found("run"), "hf");
  folder.write("texts/a.txt", "");
  EXPECT_EQ(found("texts"), "text");
  folder.write("both/a.csv.gz", "");
  folder.write("both/b.jsonl", "");
  EXPECT_THAT(found("both"), AllOf(HasSubstr("csv:" + folder.path("both")),
                                   HasSubstr("jsonl:" + folder.path("both"))));
  folder.write("none/a.jpg", "");
  EXPECT_THAT(found("none"), HasSubstr("images:" + folder.path("none")));
  SourceSpec spec =
      parse_source_spec(Json(folder.path("one") + "?where=day%3D1"), "source");
  EXPECT_EQ(spec.path, folder.path("one"));
  EXPECT_EQ(spec.where, "day=1");
}

TEST(SourceUri, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(refusal(R"("train.sqlite")"), HasSubstr("does not exist"));
  EXPECT_THAT(refusal(R"("sqlite:#t")"), HasSubstr("names no file"));
  EXPECT_THAT(refusal(R"("sqlite:a#")"), HasSubstr("no table follows"));
}

TEST(SourceUri, ShowsNothingThatMayHoldAPassword) {
  for (const char* uri :
       {"mysql://me:SECRET@host/db", "postgresql://me:SEC#RET/2@host/db",
        "postgresql://u:SECRET@h/db#", "postgresql://u:SECRET#",
        "pwuser:SECRET@host/db", "pwuser:SECRET@host/db#t",
        "postgres:/u:SECRET@h/db", "postgresql:u:SECRET@h",
        "host=h passwrd='SECRET'", "host=h password=SECRET dbname=d",
        "postgres+psycopg2://u:SECRET@h/db", "u%3ASECRET%40h:1",
        "POSTGRESQL://u:SECRET@h/db", "pwuser:SECRET@host/db.parquet",
        "csv:postgresql://u:SECRET@h/d", "hf://u:SECRET@x"}) {
    try {
      parse_source_spec(Json(std::string(uri)), "source");
      FAIL() << uri;
    } catch (const Error& error) {
      EXPECT_EQ(error.parts().code, "source.uri");
      for (const char* part : {"SEC", "RET", "ECRET"})
        EXPECT_THAT(error.json(), Not(HasSubstr(part))) << uri;
    }
  }
  EXPECT_THAT(refusal(R"("mysql://me:hunter2@host/db")"),
              AllOf(HasSubstr("'mysql://***'"), HasSubstr("hidden")));
  EXPECT_THAT(refusal(R"("postgresql://me:hunt#er/2@host/db")"),
              HasSubstr("%23"));
}

TEST(SourceUri, ShowsNoOptionOfAnObjectStoreThatMayHoldAPassword) {
  for (const char* uri :
       {R"("s3://b/x.parquet?endpoint_override=http://u:hunter2@h")",
        R"("s3://b/x.parquet?endpoint_override=http%3A%2F%2Fu%3Ahunter2%40h")"})
    EXPECT_THAT(refusal(uri),
                AllOf(HasSubstr("has an '@'"), Not(HasSubstr("hunter2"))));
}

TEST(SourceSpec, TakesNoAddressForAFolderOfCopies) {
  EXPECT_THAT(refusal(R"({"kind": "csv", "path": "t.csv",
                          "stage": "s3://A:SECRET@b"})"),
              AllOf(HasSubstr("source.stage"), Not(HasSubstr("SECRET"))));
}

TEST(SourceSpec, TakesNoConnectionStringForAFile) {
  EXPECT_THAT(refusal(R"({"kind": "parquet", "path": ["a.parquet",
                          "pwuser:SECRET@host/db.parquet"]})"),
              AllOf(HasSubstr("source.path"), Not(HasSubstr("SECRET"))));
  EXPECT_THAT(refusal(R"({"kind": "sqlite", "path": "x://u:SECRET@h/d"})"),
              AllOf(HasSubstr("source.path"), HasSubstr("\"uri\""),
                    Not(HasSubstr("SECRET"))));
}

TEST(SourceKinds, AreFoundByTheirExample) {
  for (const SourceKind& kind : source_kinds()) {
    SourceSpec spec = parse_source_spec(Json(kind.example), "source");
    EXPECT_EQ(spec.kind, kind.name);
    EXPECT_EQ(spec.table, kind.files ? "" : "table");
    EXPECT_EQ(source_kind(kind.name), &kind);
    EXPECT_THAT(source_examples(), HasSubstr(kind.example));
  }
  EXPECT_EQ(source_kind("mysql"), nullptr);
}

/// What a section says of a setting beside the place.
Json section_with(const SourceKind& kind, const std::string& key,
                  const Json& value) {
  Json section;
  section["kind"] = kind.name;
  section[kind.place_key()] = kind.server ? "postgresql://h/b" : "a.x";
  if (!value.is_null()) section[key] = value;
  return section;
}

/// Values of settings whose rule does not say enough.
Json example_of(const std::string& key) {
  if (key == "ragged" || key == "arrays")
    return Json::parse(R"({"v": "o"})", "");
  if (key == "delimiter" || key == "quote") return Json(";");
  if (key == "thousands") return Json(",");  // "." is the mark of a fraction
  return {};
}

TEST(SourceKinds, IdentifyRowsByEverySettingThatMayChangeThem) {
  std::vector<std::string> none, written;
  for (const SourceKind& kind : source_kinds()) {
    std::vector<SettingSchema> all = kind.settings.schemas();
    for (SettingSchema& beside : settings_beside(kind))
      all.push_back(std::move(beside));
    const Json plain = settings_in_identity(
        parse_source_spec(section_with(kind, "", Json()), "source"));
    EXPECT_EQ(plain, Json(Json::Object{})) << kind.name;
    for (const SettingSchema& setting : all) {
      if (setting.identity == Identity::none) none.push_back(setting.key);
      if (setting.identity == Identity::written) written.push_back(setting.key);
      if (setting.identity != Identity::value) continue;
      const Json* otherwise = setting.rule.find("default");
      Json other = example_of(setting.key);
      if (other.is_null())
        other = other_value(setting.rule,
                            otherwise == nullptr ? Json() : *otherwise);
      ASSERT_FALSE(other.is_null()) << kind.name << "." << setting.key;
      const SourceSpec spec =
          parse_source_spec(section_with(kind, setting.key, other), "source");
      EXPECT_EQ(settings_in_identity(spec).find(setting.key) != nullptr, true)
          << kind.name << "." << setting.key << " = " << other.dump();
    }
  }
  // A new setting shows by its value. To leave one out is a decision.
  auto once = [](std::vector<std::string>& keys) {
    std::ranges::sort(keys);
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  };
  once(none);
  once(written);
  EXPECT_THAT(none, ElementsAre("connections", "decoded_gib", "fingerprint",
                                "listing", "on_bad", "on_missing",
                                "round_trip_ms", "schema", "stage", "version"));
  EXPECT_THAT(written,
              ElementsAre("classes", "columns", "key", "labels", "path",
                          "query", "rows_where", "table", "uri", "where"));
}

TEST(SourceSection, TakesValuesOfColumnsAsACondition) {
  const SourceSpec spec = parse_source_spec(
      Json::parse(R"({"kind": "sqlite", "path": "a", "where": "x > 1",
                      "rows_where": {"se\"t": ["o'clock", 7]}})",
                  "test"),
      "source");
  EXPECT_EQ(spec.where, "(x > 1\n) AND \"se\"\"t\" IN ('o''clock', 7)");
  EXPECT_EQ(*source_section(spec).find("where"), Json(spec.where));
}

TEST(SourceSection, TakesNoOtherValuesOfColumns) {
  const auto refused = [](const std::string& rows_where) {
    const std::string section =
        R"({"kind": "sqlite", "path": "a", "rows_where": )" + rows_where + "}";
    return refusal(section.c_str());
  };
  EXPECT_THAT(refused(R"({"id": []})"), HasSubstr("list of 1 to 10000 values"));
  EXPECT_THAT(refused(R"({"id": "a"})"), HasSubstr("list of 1 to 10000"));
  EXPECT_THAT(refused(R"({"": ["a"]})"), HasSubstr("list of 1 to 10000"));
  EXPECT_THAT(refused(R"({"id": [1.5]})"), HasSubstr("a text or an integer"));
  EXPECT_THAT(refused(R"({"id": [["a"]]})"), HasSubstr("text or an integer"));
  EXPECT_THAT(refused(R"({"id": ["a\\"]})"), HasSubstr("has a backslash"));
  EXPECT_THAT(refused(R"({"id": ["a\n"]})"), HasSubstr("control character"));
  EXPECT_THAT(refused(R"(["a"])"), HasSubstr("source.rows_where"));
  EXPECT_THAT(refused(R"({"id": ["a"]}, "query": "SELECT 1")"),
              HasSubstr("applies to a table"));
}

TEST(SourceKinds, ShowASectionThatIsReadAgain) {
  for (const SourceKind& kind : source_kinds()) {
    SourceSpec spec = parse_source_spec(Json(kind.example), "source");
    Json shown = source_section(spec);
    EXPECT_EQ(source_section(parse_source_spec(shown, "source")), shown);
    if (!kind.files) {
      EXPECT_EQ(*shown.find("table"), Json("table"));
    }
    EXPECT_EQ(*shown.find("on_bad"), Json("stop"));
    EXPECT_EQ(shown.find("where"), nullptr);
  }
}

}  // namespace
}  // namespace penstock
