// A library that is not a plugin of Penstock; with PENSTOCK_TEST_ABSENT it also
// needs a library that is not found at run time.
#ifdef PENSTOCK_TEST_ABSENT
extern "C" int penstock_test_absent();
extern "C" int penstock_test_needs() { return penstock_test_absent(); }
#else
extern "C" int penstock_test_absent() { return 0; }
#endif
