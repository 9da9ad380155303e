// It needs a library that is not found at run time.
extern "C" int penstock_test_absent();
extern "C" int penstock_test_needs() { return penstock_test_absent(); }
