#include "penstock/base/connection_string.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(ConnectionString, IsShownWithoutItsSecrets) {
  for (auto [text, shown] :
       std::initializer_list<std::pair<const char*, const char*>>{
           {"postgresql://u:SECRET@h:5432/db?sslmode=require",
            "postgresql://u:***@h:5432/db?sslmode=require"},
           {"postgres://u@h1:1,[::1]:2,h3/db",
            "postgres://u@h1:1,[::1]:2,h3/db"},
           {"postgresql://u:SEC%40RET@h", "postgresql://u:***@h"},
           {"postgresql://h/db?password=SECRET&user=u%40corp",
            "postgresql://h/db?password=***&user=u%40corp"},
           {"postgresql://h/db?passwor%64=SECRET",
            "postgresql://h/db?password=***"},
           {"postgresql:///db?host=@socket&sslpassword=SECRET",
            "postgresql:///db?host=@socket&sslpassword=***"},
           {"postgresql://h/db?options=-c%20app.token%3DSECRET",
            "postgresql://h/db?options=***"},
           {"postgresql://h?options=-csearch_path%3Dx&passfile=/p&service=s",
            "postgresql://h?options=-csearch_path%3Dx&passfile=/p&service=s"},
           {"postgresql://", "postgresql://"},
           {"host=h password=SECRET user=u", "host=h password=*** user=u"},
           {" host = h  password = 'SEC RET\\'' ", "host=h password=***"},
           {"password=SEC\\ RET dbname='my db'", "password=*** dbname='my db'"},
           {"host=/tmp user=u@corp hostaddr=::1",
            "host=/tmp user=u@corp hostaddr=::1"},
           {"sslkey=pkcs11:object=k;pin-value=SECRET host=h",
            "sslkey=*** host=h"},
           {"host=token user=password_only dbname=secrets",
            "host=token user=password_only dbname=secrets"},
           {"lab", "lab"},
           {"", ""}})
    EXPECT_EQ(shown_connection(text), shown);
}

TEST(ConnectionString, IsStoredAsLibpqFindsTheSecretsByItself) {
  for (auto [text, stored] :
       std::initializer_list<std::pair<const char*, const char*>>{
           {"postgresql://u:SECRET@h:5432/db?sslmode=require",
            "postgresql://u@h:5432/db?sslmode=require"},
           {"postgresql://h/db?password=SECRET&port=1",
            "postgresql://h/db?port=1"},
           {"postgresql://h/db?port=1&password=", "postgresql://h/db?port=1"},
           {"postgresql://h/db?password=SECRET", "postgresql://h/db"},
           {"host=h password=SECRET user=u", "host=h user=u"},
           {"password='' host=h", "host=h"},
           {"host = h password = 'a b' sslpassword=x", "host=h"},
           {"password=SECRET", "postgresql://"},
           {"host=h user='it\\'s'", "host=h user='it\\'s'"},
           {"lab", "lab"}})
    EXPECT_EQ(stored_connection(text), stored);
}

TEST(ConnectionString, IsHiddenAsAWholeWhereItCannotBeRead) {
  for (const char* text : {"pwuser:SECRET@host/db",
                           "postgres:/u:pw@h/db",
                           "postgresql:u:pw@h",
                           "POSTGRESQL://u:pw@h/db",
                           " postgresql://u:pw@h/db",
                           "postgresql+psycopg2://u:pw@h/db",
                           "jdbc:postgresql://h/db?password=x",
                           "mysql://u:pw@h/db",
                           "host=h passwrd='pw'",
                           "host=h pw",
                           "host=h password='pw",
                           "host=h password 'pw'",
                           "host=h PASSWORD=pw",
                           "host=h password='a'b user=u",
                           "host=h port=pw",
                           "host=u:pw@h",
                           "host=u:pw",
                           "user=u:pw",
                           "dbname=u:pw@h",
                           "dbname=postgresql://u:pw",
                           "host=h dbname='password=pw'",
                           "postgresql://u:a@b@h/db",
                           "postgresql://u:a/b@h/db",
                           "postgresql://u:pw",
                           "postgresql://u:pw/db",
                           "postgresql://u%3Apw@h/db",
                           "postgresql://u:5%40h/db",
                           "postgresql://u@h:pw/db",
                           "postgresql://u:%zz@h/db",
                           "postgresql://u:p%0@h",
                           "postgresql://u:%00@h",
                           "postgresql://[u:pw",
                           "postgresql://[::1]pw",
                           "postgresql://[::1]pw:1",
                           "postgresql://h/u:pw",
                           "postgresql://h/db?passwd=pw",
                           "postgresql://h/db?pw",
                           "postgresql://h/db?password=a=b",
                           "postgresql://h/db?user=u:pw",
                           "postgresql://h/db?dbname=x://u:pw",
                           "postgresql://h pw/db",
                           "postgresql://h/db?password=a@b:c@h",
                           "***@"}) {
    EXPECT_EQ(shown_connection(text), kHiddenConnection) << text;
    EXPECT_EQ(stored_connection(text), kHiddenConnection) << text;
  }
}

}  // namespace
}  // namespace penstock
