// A library that is not a plugin of Penstock.
extern "C" int penstock_test_absent() { return 0; }
