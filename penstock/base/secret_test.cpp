#include "penstock/base/secret.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(WithoutPassword, HidesItInBothForms) {
  EXPECT_EQ(
      without_password("postgresql://me:hush@host:5432/db?sslmode=require"),
      "postgresql://me:***@host:5432/db?sslmode=require");
  EXPECT_EQ(without_password("postgresql://host:5432/db?password=hush&port=1"),
            "postgresql://host:5432/db?password=***&port=1");
  EXPECT_EQ(without_password("host=h password=hush user=me"),
            "host=h password=*** user=me");
  EXPECT_EQ(without_password("password = 'a b\\'c' host=h"),
            "password = *** host=h");
}

TEST(WithoutPassword, MayHoldAnyCharacterInAUri) {
  for (const char* password : {"SEC?RET", "SEC/RET", "SEC@RET", "SEC:RET",
                               "SEC#RET", "SEC RET", "SEC%3fRET", "SEC&RET"})
    EXPECT_EQ(without_password("postgresql://u:" + std::string(password) +
                               "@h/db?sslmode=require"),
              "postgresql://u:***@h/db?sslmode=require")
        << password;
}

TEST(WithoutPassword, IsHiddenWhereAUriCanBeReadInTwoWays) {
  for (const char* uri :
       {"postgresql://u:SEC?RET=x@h/db",
        "postgresql://h:5432/db?password=SE@RET",
        "postgresql://h/db?password=SE@RET", "postgresql://u?x:SECRET@h/db",
        "postgresql://u@h/db?password=SEC:RET@x", "postgresql://u:SECRET",
        "postgresql://h/db?user=u:SECRET@h",
        "postgresql://h/db password=SECRET",
        "postgresql://h/db?host=x password=SECRET"})
    for (const char* part : {"SE", "RET"})
      EXPECT_EQ(without_password(uri).find(part), std::string::npos)
          << uri << " -> " << without_password(uri);
}

TEST(WithoutPassword, IsHiddenWhereItsAtOrColonIsEscapedOrForgotten) {
  for (const char* uri :
       {"postgresql://u:SECRET", "postgresql://u:5ECRET",
        "postgresql://u:5ECRET%40h/db", "postgresql://u%3ASECRET@h/db",
        "postgresql://u%3aSECRET%40h", "postgresql://u@h:SECRET/db",
        "postgresql://h1:5432,h2:SECRET", "postgresql://[::1]:SECRET",
        "postgresql://[u:SECRET", "postgresql://u:SE@RET@h:SECRET/db"})
    for (const char* part : {"SE", "5ECRET"})
      EXPECT_EQ(without_password(uri).find(part), std::string::npos)
          << uri << " -> " << without_password(uri);
  EXPECT_EQ(without_password("postgresql://u:5ECRET%40h/db"),
            "postgresql://u:***");
  EXPECT_EQ(without_password("postgresql://u%3ASECRET@h/db"),
            "postgresql://u:***@h/db");
  EXPECT_EQ(without_password("postgresql://u:99999"), "postgresql://u:***");
}

TEST(WithoutPassword, ShowsOnlyTheParametersOfAUriThatAreHarmless) {
  EXPECT_EQ(
      without_password("postgresql://h/db?passwor%64=SECRET&user=u&connect_"
                       "timeout=5&sslpassword=SECRET&future=SECRET&SECRET"),
      "postgresql://h/db?passwor%64=***&user=u&connect_timeout=5&"
      "sslpassword=***&future=***&***");
  EXPECT_EQ(without_password("postgresql://h1:5432,[::1]:5433/db?host=%2Ftmp&"
                             "options=-csearch_path%3Dx"),
            "postgresql://h1:5432,[::1]:5433/db?host=%2Ftmp&"
            "options=-csearch_path%3Dx");
}

TEST(WithoutPassword, EndsAtWhiteSpaceInTheKeyValueForm) {
  EXPECT_EQ(without_password("host=h password=SEC&RET"), "host=h password=***");
  EXPECT_EQ(without_password("password=SEC\\ RET user=x"),
            "password=*** user=x");
  EXPECT_EQ(without_password("password=SEC'RE\tuser=x"),
            "password=***\tuser=x");
  EXPECT_EQ(without_password("password='SEC\\\\' user=x"),
            "password=*** user=x");
  EXPECT_EQ(without_password("password='SECRET user=x"), "password=***");
  EXPECT_EQ(without_password("password=SECRET\\"), "password=***");
  EXPECT_EQ(without_password("password=a://SE:CRET host=h"),
            "password=*** host=h");
  EXPECT_EQ(without_password("sslpassword=A PASSWORD = B "
                             "oauth_client_secret=C scram_client_key=D="),
            "sslpassword=*** PASSWORD = *** oauth_client_secret=*** "
            "scram_client_key=***");
}

TEST(WithoutPassword, IsFoundInAMessageToo) {
  EXPECT_EQ(without_password("source.uri:postgresql://u:SECRET@h/db"),
            "source.uri:postgresql://u:***@h/db");
  EXPECT_EQ(without_password("uri=host=h password=SECRET"),
            "uri=host=h password=***");
  EXPECT_EQ(without_password("missing \"=\" after \"x\": host=h password=S "
                             "http://u:P@h"),
            "missing \"=\" after \"x\": host=h password=*** http://u:***@h");
}

TEST(WithoutPassword, IsHiddenWhereNoSchemeStandsInFront) {
  EXPECT_EQ(without_password("pwuser:SECRET@host/db"), "pwuser:***@host/db");
  EXPECT_EQ(without_password("cannot use postgres:/u:SEC@RET@h/db, so"),
            "cannot use postgres:***@h/db, so");
  EXPECT_EQ(without_password("host=h passwrd='SEC RET' user=u"),
            "host=h passwrd=*** user=u");
  EXPECT_EQ(without_password("u:SECRET@h and postgresql://u:SECRET@h"),
            "u:***@h and postgresql://u:***@h");
}

TEST(WithoutPassword, LeavesOthersAlone) {
  EXPECT_EQ(without_password("postgresql://me@host:5432/db"),
            "postgresql://me@host:5432/db");
  for (const char* text :
       {"postgresql://host/db", "postgresql://", "postgresql://h:/db",
        "postgresql://[::1]/db", "postgresql://[::1]:5432/db",
        "postgresql://u@h1:1,[::1]:65535,h3/db?user=a:b", "host=h user=me",
        "half", "", "a: b@c", "bandpass=3", "source.uri: me@host", "password",
        "password=", "a=b=c", "train.sqlite"})
    EXPECT_EQ(without_password(text), text);
}

}  // namespace
}  // namespace penstock
