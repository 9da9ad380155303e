// glibc 2.35 gave hypot() a new version, which a library that is linked there
// asks for. In a wheel, whose glibc may be older, the linker replaces the
// function by this one, which calls the version that every glibc of x86-64 has.
extern "C" {

double penstock_old_hypot(double x, double y);
__asm__(".symver penstock_old_hypot,hypot@GLIBC_2.2.5");

double __wrap_hypot(double x, double y) { return penstock_old_hypot(x, y); }
}
